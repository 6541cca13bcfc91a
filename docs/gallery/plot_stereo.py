"""
Depth from two images
=====================

A generated pair in the manner of the Middlebury sets: each pixel of the left image is found again, some
pixels further left, in the right one. The label of a pixel is that distance, its disparity; near things have
a large one.
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import AbsDiff, FactorGraph

# %%
# A random texture, shifted by the true disparity.
rng = np.random.default_rng(1)
height, width, disparities = 50, 90, 12
truth = np.full((height, width), 2)
truth[10:35, 20:50] = 8
truth[25:45, 55:80] = 5
size = height, width + disparities
texture = rng.normal(size=size).cumsum(1) * 0.3 + rng.normal(size=size)
left = np.stack([texture[r, np.arange(width) + truth[r]] for r in range(height)])
right = texture[:, :width] + 0.15 * rng.normal(size=(height, width))

# %%
# The score of a disparity is minus the difference of colours, cut off where something may be hidden.
cost = np.full((height, width, disparities), 1.5)
for d in range(disparities):
    cost[:, : width - d, d] = np.minimum(np.abs(left[:, : width - d] - right[:, d:]), 1.5)
graph = FactorGraph.grid((height, width), -cost, AbsDiff(0.25, 2))
result = fginfer.solve(graph, time_limit=2)
print(f"gap {result.gap:.1e}, {result.status}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9, 2.3))
axes[0].imshow(left, cmap="gray")
axes[0].set_title("left image")
alone = cost.argmin(-1)
found = result.labels.reshape(height, width)
for axis, title, picture in ((axes[1], "each pixel alone", alone), (axes[2], "together", found)):
    axis.imshow(picture, cmap="viridis", vmin=0, vmax=disparities - 1)
    axis.set_title(f"{title}: {(np.abs(picture - truth) > 1).mean():.1%} wrong")
for axis in axes:
    axis.set(xticks=[], yticks=[])
figure.tight_layout()
