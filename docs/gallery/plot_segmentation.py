"""
A segmentation that is learned
==============================

A small network says for every pixel of a noisy picture what it thinks of each of three regions; a layer of MAP
inference knows that neighbours tend to belong together. Network and table of neighbours learn together, by the hinge
loss; the same network without neighbours is what to compare with.
"""

import matplotlib.pyplot as plt
import numpy as np

from fginfer import nn

rng = np.random.default_rng(0)
size, regions, hidden = 16, 3, 8


def pictures(count):
    """Discs and stripes of three grey levels under much noise, and which is which."""
    row, column = np.mgrid[:size, :size]
    truth = np.zeros((count, size, size), int)
    for labels in truth:
        at, radius = rng.integers(3, 13, 2), rng.integers(3, 6)
        labels[:, rng.integers(2, 12) :] = 1
        labels[(row - at[0]) ** 2 + (column - at[1]) ** 2 < radius**2] = 2
    return truth + rng.normal(0, 0.8, truth.shape), truth


# %%
# A pixel's features are its grey level, that of its four neighbours, and 1; the network has one layer of eight units.
def features(seen):
    padded = np.pad(seen, ((0, 0), (1, 1), (1, 1)), mode="edge")
    near = (padded[:, 2:, 1:-1] + padded[:, :-2, 1:-1] + padded[:, 1:-1, 2:] + padded[:, 1:-1, :-2]) / 4
    return np.stack([seen, near, np.ones_like(seen)], -1).reshape(len(seen), size * size, 3)


def train(structure, x, labels, epochs=30, rate=0.01):
    """Plain gradient descent through the layer and the network."""
    layer = nn.Layer(structure, threads=2)
    start = np.random.default_rng(1)
    inner, outer = start.normal(0, 0.5, (3, hidden)), start.normal(0, 0.5, (hidden, regions))
    table = np.zeros((regions, regions)) if structure.n_factors else None
    for epoch in range(epochs):
        step = rate / (1 + epoch / 10)
        for k in range(0, len(x), 10):
            batch, units = x[k : k + 10], np.tanh(x[k : k + 10] @ inner)
            loss = layer.hinge(labels[k : k + 10], units @ outer, table, keys=range(k, k + 10))
            back = loss.gradients.unaries / len(batch)
            through = (back @ outer.T) * (1 - units**2)
            outer -= step * np.einsum("npu,npr->ur", units, back)
            inner -= step * np.einsum("npf,npu->fu", batch, through)
            if table is not None:
                table -= step / 10 * loss.gradients.tables / len(batch)  # every neighbour adds to it
    return lambda x: layer.labels(np.tanh(x @ inner) @ outer, table)


# %%
# Both learn from forty pictures and are tried on ten others.
seen, truth = pictures(50)
x, labels = features(seen), truth.reshape(50, -1)
alone = train(nn.Structure([regions] * size**2), x[:40], labels[:40])(x[40:])
together = train(nn.Structure.grid((size, size), regions), x[:40], labels[:40])(x[40:])
wrong = {"network alone": (alone != labels[40:]).mean(), "with neighbours": (together != labels[40:]).mean()}
print({name: f"{share:.1%} of pixels wrong" for name, share in wrong.items()})
assert wrong["with neighbours"] < wrong["network alone"]

# %%
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8))
shown = {"seen": seen[40], "network alone": alone[0], "with neighbours": together[0], "truth": labels[40]}
for axis, (title, picture) in zip(axes, shown.items(), strict=True):
    axis.imshow(picture.reshape(size, size), cmap="gray" if title == "seen" else "viridis")
    axis.set(title=f"{title}: {wrong[title]:.1%}" if title in wrong else title, xticks=[], yticks=[])
figure.tight_layout()
