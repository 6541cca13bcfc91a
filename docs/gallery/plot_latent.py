"""
Latent features of images
=========================

Each image is a sum of some of four hidden patterns, with noise. Which patterns, and which image has which? A
convex estimator finds both; its oracle is a binary MAP problem.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np

from fginfer.latent import LatentFeatureLasso

rng = np.random.default_rng(0)
patterns = np.zeros((4, 6, 6))
patterns[0, 0:3, 0:3] = patterns[1, 3:6, 0:2] = patterns[2, 1:4, 4:6] = 1
patterns[3, 4:6, 3:6] = 1
patterns *= rng.uniform(0.5, 1.5, patterns.shape)
has = rng.random((150, 4)) < 0.5
images = has @ patterns.reshape(4, 36) + 0.2 * rng.normal(size=(150, 36))

# %%
model = LatentFeatureLasso(n_components=4, random_state=0).fit(images)
found = model.transform(images).astype(bool)
order = max(itertools.permutations(range(4)), key=lambda o: (found[:, o] == has).mean())
print(f"{(found[:, order] == has).mean():.1%} of the features are told right")

# %%
figure, axes = plt.subplots(2, 4, figsize=(7, 3.6))
for k in range(4):
    axes[0, k].imshow(patterns[k], cmap="magma")
    axes[1, k].imshow(np.asarray(model.components_)[order[k]].reshape(6, 6), cmap="magma")
for axis in axes.flat:
    axis.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("true")
axes[1, 0].set_ylabel("found")
figure.tight_layout()
