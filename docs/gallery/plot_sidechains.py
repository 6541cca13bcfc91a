"""
Side chains of a protein
========================

Each residue chooses one of its rotamers; neighbours in space must not collide. A generated molecule: the
labels are angles, collision costs much, and each residue has angles it prefers.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist

import fginfer
from fginfer import FactorGraph

rng = np.random.default_rng(3)
residues, rotamers, length = 40, 12, 0.55
spine = np.cumsum(rng.normal(size=(residues, 2)), 0) * 0.9
angles = np.linspace(0, 2 * np.pi, rotamers, endpoint=False)
tips = spine[:, None] + length * np.stack([np.cos(angles), np.sin(angles)], -1)

# %%
# Scores are minus energies: a preference for each rotamer, and a repulsion that grows as tips get closer.
graph = FactorGraph([rotamers] * residues)
for i in range(residues):
    graph.add_factor([i], -rng.gamma(1.0, 1.0, rotamers))
for i in range(residues):
    for j in range(i + 1, residues):
        distance = cdist(tips[i], tips[j])
        if distance.min() < 0.5:
            graph.add_factor([i, j], -np.minimum(0.05 / (distance**4 + 1e-3), 30.0))
result = fginfer.solve(graph, time_limit=3)
print(graph, result.status, f"energy {result.energy:.2f}")

# %%
# The best rotamer of each residue alone collides; together they avoid each other.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
alone = np.array([graph.unary(i).argmax() for i in range(residues)])
for axis, title, x in ((axes[0], "each alone", alone), (axes[1], "together", result.labels)):
    axis.plot(*spine.T, color="0.6", lw=1)
    for i in range(residues):
        axis.plot(*np.stack([spine[i], tips[i, x[i]]]).T, "-", color="tab:red", lw=1.5)
    axis.set(title=f"{title}: energy {graph.energy(x):.1f}", xticks=[], yticks=[])
    axis.set_aspect("equal")
figure.tight_layout()
