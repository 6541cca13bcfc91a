"""
How sure is each pixel?
=======================

The same digit, three questions: which labeling is best, how probable is ink at each pixel, and what is lost if a pixel
has the other label.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fginfer
from fginfer import FactorGraph, Potts

digit = load_digits().images[3] > 7
seen = digit + np.random.default_rng(0).normal(0, 0.35, digit.shape)
unary = np.stack([np.zeros(digit.shape), 4 * (seen - 0.5)], axis=-1)
graph = FactorGraph.grid(digit.shape, unary, Potts(0, -0.4))

# %%
# Marginals and max-marginals are exact here, because eight rows are narrow enough for elimination.
best = fginfer.solve(graph)
probable = fginfer.marginals(graph)
lost = fginfer.max_marginals(graph)
ink = np.array([p[1] for p in probable.variables]).reshape(digit.shape)
margin = np.array([loss.max() for loss in lost.losses()]).reshape(digit.shape)
print(f"log Z {probable.log_z:.3f}, exact: {probable.exact} and {lost.exact}")

# %%
# The second picture is grey where both labels are probable; in the third one dark pixels would cost little to change.
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8))
pictures = {
    "seen": (seen, "gray_r"),
    "best labeling": (best.labels.reshape(digit.shape), "gray_r"),
    "probability of ink": (ink, "gray_r"),
    "what the other label loses": (margin, "viridis"),
}
for axis, (title, (picture, colours)) in zip(axes, pictures.items(), strict=True):
    shown = axis.imshow(picture, cmap=colours)
    axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axis, fraction=0.046)
figure.tight_layout()
