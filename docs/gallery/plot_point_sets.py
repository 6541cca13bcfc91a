"""
Matching point sets, learned
============================

Six points are seen twice: turned, moved, and with noise. Which is which? A point's descriptor says little; that
distances between points stay the same says more, and that no two points go to the same one is a rule. How much each of
the two counts is learned, by the hinge loss through the solver.
"""

import matplotlib.pyplot as plt
import numpy as np

from fginfer import nn

rng = np.random.default_rng(0)
n = 6
pairs = np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
layer = nn.Layer(nn.Structure([n] * n, pairs))


def scenes(count):
    """Points, where they go, and a weak descriptor of each point in both pictures."""
    first = rng.uniform(size=(count, n, 2))
    goes = np.array([rng.permutation(n) for _ in range(count)])
    angle = rng.uniform(0, 2 * np.pi, count)
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], -1).reshape(count, 2, 2)
    second = np.empty_like(first)
    np.put_along_axis(second, goes[..., None], first @ turn + rng.normal(0, 0.03, first.shape), 1)
    looks = rng.normal(size=(count, n))
    seen = np.empty_like(looks)
    np.put_along_axis(seen, goes, looks + rng.normal(0, 0.5, looks.shape), 1)
    return first, second, -np.abs(looks[:, :, None] - seen[:, None, :]), goes


# %%
# The score of a pair of matches is minus the change of distance; matches to one point are forbidden.
def changes(first, second):
    apart = np.linalg.norm(first[:, pairs[:, 0]] - first[:, pairs[:, 1]], axis=-1)
    other = np.linalg.norm(second[:, :, None] - second[:, None], axis=-1)
    return -np.abs(apart[:, :, None, None] - other[:, None])


def scores(weights, alike, change):
    tables = weights[1] * change
    tables[..., np.arange(n), np.arange(n)] = -np.inf
    return weights[0] * alike, tables


# %%
# Two weights learn; the gradient of a table times the table says which way the second goes.
first, second, alike, goes = scenes(60)
change, weights = changes(first, second), np.array([1.0, 0.0])
right = []
for _ in range(15):
    unaries, tables = scores(weights, alike[:40], change[:40])
    loss = layer.hinge(goes[:40], unaries, tables)
    slopes = (loss.gradients.unaries * alike[:40]).sum(), (loss.gradients.tables * change[:40]).sum()
    weights = np.maximum(0.0, weights - np.array([0.01, 0.5]) * slopes / 40 * 10)
    right.append((layer.labels(*scores(weights, alike[40:], change[40:])) == goes[40:]).mean())
print(f"weights {weights.round(2)}: {right[0]:.0%} of points right after one step, {right[-1]:.0%} at the end")
by_looks = (layer.labels(*scores(np.array([1.0, 0.0]), alike[40:], change[40:])) == goes[40:]).mean()
assert right[-1] > by_looks

# %%
found = layer.labels(*scores(weights, alike[40:41], change[40:41]))[0]
figure, (left, middle) = plt.subplots(1, 2, figsize=(8, 3.2))
left.plot(right, label="learned")
left.axhline(by_looks, color="gray", linestyle=":", label="descriptors alone")
left.set(xlabel="epoch", ylabel="points that are right")
left.legend()
moved = second[40] + [1.8, 0]
middle.scatter(*first[40].T)
middle.scatter(*moved.T)
for a, b in enumerate(found):
    middle.plot(*np.stack([first[40][a], moved[b]]).T, color="green" if b == goes[40][a] else "red", linewidth=1)
middle.set(title="one of the others", xticks=[], yticks=[])
figure.tight_layout()
