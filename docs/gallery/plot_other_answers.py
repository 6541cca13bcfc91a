"""
What else could it be?
======================

A digit is read through noise. The best labeling is one answer; ``k_best`` with a distance gives others that are nearly
as good and really different, each with a proof that nothing better was left out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fginfer
from fginfer import FactorGraph, Potts

# %%
# The picture of an eight that comes with scikit-learn, as ink and paper, and the same under noise.
digit = load_digits().images[8] > 7
rng = np.random.default_rng(1)
seen = digit + rng.normal(0, 0.55, digit.shape)
unary = np.stack([np.zeros(digit.shape), 3 * (seen - 0.5)], axis=-1)
graph = FactorGraph.grid(digit.shape, unary, Potts(0, -0.5))

# %%
# Four answers, each of them different from those before in five pixels at least.
answers = list(fginfer.k_best(graph, 4, min_distance=5))
for answer in answers:
    print(f"score {answer.score:.3f}, nothing better is missing: {answer.bound:.3f}")

# %%
figure, axes = plt.subplots(1, 6, figsize=(10, 2.1))
pictures = {"truth": digit, "seen": seen} | {
    f"{k}: {answer.score:.2f}": answer.labels.reshape(digit.shape) for k, answer in enumerate(answers, 1)
}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray_r")
    axis.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
