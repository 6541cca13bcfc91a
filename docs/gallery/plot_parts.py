"""
One model in parts, on Dask
===========================

A model that is too large for one machine is cut into parts, which live on the workers of a Dask cluster. Only what
concerns variables at the cuts travels, and the bound is one of the whole model at any moment. Here the cluster is two
threads, and the model a photograph.
"""

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from sklearn.datasets import load_sample_image

import fginfer
from fginfer import AbsDiff, FactorGraph

# %%
# Eight grey levels for each of 7,200 pixels, in four parts of our own choice: the quarters of the picture.
photo = load_sample_image("china.jpg").mean(axis=2)[60:300:3, 150:420:3] / 255
levels = np.linspace(0, 1, 8)
noisy = photo + np.random.default_rng(0).normal(0, 0.1, photo.shape)
unary = -20 * (noisy[..., None] - levels) ** 2
graph = FactorGraph.grid(photo.shape, unary, AbsDiff(0.3, 3))
row, column = np.indices(photo.shape)
quarter = 2 * (row >= 40) + (column >= 45)

with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    apart = fginfer.solve(graph, parts=quarter.ravel(), client=client, max_iterations=60)
whole = fginfer.solve(graph, "trws", max_iterations=60)
print(f"in parts: score {apart.score:.4f}, bound {apart.bound:.4f}")
print(f"in one piece: score {whole.score:.4f}, bound {whole.bound:.4f}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(10, 3))
pictures = {"seen": noisy, "the parts": quarter, "found": levels[apart.labels.reshape(photo.shape)]}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="Set2" if title == "the parts" else "gray")
    axis.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
