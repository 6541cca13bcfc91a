"""
A learner of one's own on the oracles
=====================================

A perceptron for images with noise, where neighbouring pixels share an edge: unigrams are inner products, bigrams a
sorted table that changes in place, and every question goes through ``fginfer.oracles``.
"""

import matplotlib.pyplot as plt
import numpy as np

from fginfer import FactorGraph, solve
from fginfer.oracles import InnerProducts, Messages, UpdatableTable

rng = np.random.default_rng(0)
labels, side = 4, 12
means = rng.normal(size=(labels, 6))
pixels = np.arange(side * side).reshape(side, side)
edges = np.concatenate(
    [
        np.stack([pixels[:, :-1], pixels[:, 1:]], -1).reshape(-1, 2),
        np.stack([pixels[:-1], pixels[1:]], -1).reshape(-1, 2),
    ]
)


def image() -> tuple[np.ndarray, np.ndarray]:
    """Features and true labels of an image of four rectangles, meeting at a random place."""
    row, column = rng.integers(3, side - 3, 2)
    truth = np.zeros((side, side), int)
    truth[row:, :column], truth[:row, column:], truth[row:, column:] = 1, 2, 3
    return means[truth.ravel()] + 1.2 * rng.normal(size=(side * side, 6)), truth.ravel()


# %%
# The two sources are live: what an update adds is what the next question sees. The messages of an edge are the scores
# of both its ends, with a minus, since messages are subtracted.
weights = np.zeros((6, labels))
unigrams, bigrams = InnerProducts(weights, by_feature=True), UpdatableTable((labels, labels))
begin = labels * np.arange(2 * len(edges) + 1)
u, v = edges.T
degree = np.bincount(edges.ravel())
errors = []
for _ in range(60):
    X, truth = image()
    scores = -(X @ weights) / degree[:, None]  # the edges of a pixel share its score
    keys = np.tile(np.arange(labels), 2 * len(edges))
    found = bigrams.ask(len(edges), Messages(begin, keys, scores[edges.ravel()].ravel()))
    a, b = np.divmod(found.states, labels)
    wrong = (a != truth[u]) | (b != truth[v])
    bigrams.add(truth[u][wrong], truth[v][wrong], 0.05)
    bigrams.add(a[wrong], b[wrong], -0.05)
    for node, seen in ((u, a), (v, b)):
        np.add.at(weights.T, truth[node][wrong], 0.02 * X[node][wrong])
        np.add.at(weights.T, seen[wrong], -0.02 * X[node][wrong])
    errors.append(wrong.mean())
print(f"wrong edges: {np.mean(errors[:10]):.1%} in the first ten steps, {np.mean(errors[-10:]):.1%} in the last ten")

# %%
# What it has learned is a model like any other: decode a new image with the engine, and beside it pixel by pixel.
X, truth = image()
alone = unigrams.ask(X)[0]
table = np.array([[bigrams[i, j] for j in range(labels)] for i in range(labels)])
graph = FactorGraph.from_arrays(np.full(len(X), labels), X @ weights, edges, tables=[table])
together = solve(graph, time_limit=5).labels
print(f"right: {np.mean(alone == truth):.1%} alone, {np.mean(together == truth):.1%} together")

figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
axes[0].plot(np.convolve(errors, np.ones(10) / 10, "valid"))
axes[0].set(xlabel="step", ylabel="wrong edges")
for axis, name, picture in zip(axes[1:], ("truth", "alone", "together"), (truth, alone, together), strict=True):
    axis.imshow(np.reshape(picture, (side, side)), cmap="viridis")
    axis.set(title=name, xticks=[], yticks=[])
figure.tight_layout()
