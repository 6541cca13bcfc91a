"""
Comparing methods
=================

The same model, several methods, and what each knew at every moment: the best score from below, the bound from above.
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import FactorGraph

rng = np.random.default_rng(4)
side, labels = 30, 5
pixel = np.arange(side * side).reshape(side, side)
across = np.stack([pixel[:, :-1], pixel[:, 1:]], -1).reshape(-1, 2)
down = np.stack([pixel[:-1], pixel[1:]], -1).reshape(-1, 2)
edges = np.concatenate([across, down])
tables = rng.normal(size=(len(edges), labels, labels))
unary = rng.normal(size=(side * side, labels))
graph = FactorGraph.from_arrays(np.full(side * side, labels), unary, edges, tables=tables)

# %%
# Random tables are hard: the relaxation is loose, and the methods differ in what they do about it.
results = {name: fginfer.solve(graph, name, time_limit=1.5) for name in ("auto", "trws", "gdmm", "mplp", "icm")}
for name, result in results.items():
    print(f"{name:5} {result.score:9.3f} {result.bound:9.3f} {result.status}")

# %%
figure, axis = plt.subplots(figsize=(7, 4))
for k, (name, result) in enumerate(results.items()):
    for which, style in (("score", "-"), ("bound", "--")):
        points = [(p.seconds, getattr(p, which)) for p in result.trace if getattr(p, which) is not None]
        if points:
            label = name if style == "-" else None
            axis.step(*zip(*points, strict=True), where="post", ls=style, color=f"C{k}", label=label)
best = results["auto"]
axis.set(xscale="log", xlabel="seconds", ylabel="score (solid) and bound (dashed)")
axis.set_ylim(0.97 * best.score, 1.12 * best.bound)
axis.legend()
