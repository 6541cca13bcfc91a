"""
Removing noise from an image
============================

Each pixel is a variable with 16 grey levels. It likes the level that was seen, and levels close to those of its
neighbours, up to a limit: that keeps edges sharp.
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import AbsDiff, FactorGraph

# %%
# A picture with flat regions and a ramp, and the same with noise.
rng = np.random.default_rng(0)
height, width, levels = 60, 80, 16
row, column = np.mgrid[:height, :width]
clean = np.where((row - 30) ** 2 + (column - 25) ** 2 < 300, 13, 3)
clean[:, 50:] = (column[:, 50:] - 50) // 2
seen = np.clip(clean + np.rint(rng.normal(0, 3, clean.shape)), 0, levels - 1).astype(int)

# %%
# Unary scores say what was seen; all pairs of neighbours share one implicit table, which is never stored.
unary = -np.abs(np.arange(levels) - seen[..., None])  # (rows, columns, levels)
graph = FactorGraph.grid((height, width), unary, AbsDiff(1.5, 3))
result = fginfer.solve(graph, time_limit=2)
print(f"score {result.score:.1f}, bound {result.bound:.1f}, gap {result.gap:.2e}, {result.status}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6))
pictures = {"clean": clean, "seen": seen, "found": result.labels.reshape(height, width)}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=levels - 1)
    axis.set(title=f"{title}: mean error {np.abs(picture - clean).mean():.2f}", xticks=[], yticks=[])
figure.tight_layout()
