"""
Removing noise from a photograph
================================

Each pixel is a variable with 16 grey levels. It likes the level that was seen, and levels close to those of its
neighbours, up to a limit: that keeps edges sharp. The photograph comes with scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fginfer
from fginfer import AbsDiff, FactorGraph

# %%
# A part of the picture in 16 grey levels, and the same with noise.
rng = np.random.default_rng(0)
levels = 16
photo = load_sample_image("china.jpg").mean(axis=2)[60:300:3, 180:480:3]
clean = np.rint(photo / 255 * (levels - 1)).astype(int)
seen = np.clip(clean + np.rint(rng.normal(0, 2, clean.shape)), 0, levels - 1).astype(int)

# %%
# Unary scores say what was seen; all pairs of neighbours share one implicit table, which is never stored.
unary = -((np.arange(levels) - seen[..., None]) ** 2) / 4.0  # (rows, columns, levels)
graph = FactorGraph.grid(clean.shape, unary, AbsDiff(0.8, 4))
result = fginfer.solve(graph, time_limit=2)
print(f"score {result.score:.1f}, bound {result.bound:.1f}, gap {result.gap:.2e}, {result.status}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 2.7))
pictures = {"clean": clean, "seen": seen, "found": result.labels.reshape(clean.shape)}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=levels - 1)
    axis.set(title=f"{title}: mean error {np.abs(picture - clean).mean():.2f}", xticks=[], yticks=[])
figure.tight_layout()
