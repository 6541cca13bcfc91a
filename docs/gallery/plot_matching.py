"""
Matching two graphs
===================

The points of one picture are found again in another one, rotated, disturbed and in another order. Edges of the first
should go to pairs of the second that are as far apart; no point is used twice.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import Delaunay
from scipy.spatial.distance import cdist

import fginfer
from fginfer import FactorGraph

# %%
rng = np.random.default_rng(2)
n = 14
first = rng.uniform(size=(n, 2))
angle, order = 0.7, rng.permutation(n)
rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
second = (first @ rotation.T)[order] + 0.01 * rng.normal(size=(n, 2))

# %%
# Variables are points of the first picture, labels points of the second. Every pair of variables must differ; an edge
# of the triangulation adds how well the lengths agree.
near, far = cdist(first, first), cdist(second, second)
edges = {tuple(sorted(pair)) for t in Delaunay(first).simplices for pair in ((t[0], t[1]), (t[1], t[2]), (t[0], t[2]))}
graph = FactorGraph([n] * n)
for a in range(n):
    for b in range(a + 1, n):
        table = np.exp(-((near[a, b] - far) ** 2) / 0.01) if (a, b) in edges else np.zeros((n, n))
        np.fill_diagonal(table, -np.inf)
        graph.add_factor([a, b], table)
result = fginfer.solve(graph, time_limit=5)
print(result.status, "right:", (order[result.labels] == np.arange(n)).mean())

# %%
figure, axis = plt.subplots(figsize=(6, 3))
shifted = second + np.array([1.6, 0.2])
for a, b in edges:
    axis.plot(*first[[a, b]].T, color="0.8", lw=1)
    axis.plot(*shifted[result.labels[[a, b]]].T, color="0.8", lw=1)
for a, b in enumerate(result.labels):
    axis.plot(*np.stack([first[a], shifted[b]]).T, lw=0.6, color="tab:blue")
axis.plot(*first.T, "k.")
axis.plot(*shifted.T, "k.")
axis.set_axis_off()
