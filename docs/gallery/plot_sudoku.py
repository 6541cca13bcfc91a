"""
Sudoku and colouring: hard constraints
======================================

A state with score minus infinity is forbidden. Two cells of a row, column or block must differ: one shared
table says so for all pairs.
"""

import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import fginfer
from fginfer import FactorGraph

puzzle = [
    *("53..7....", "6..195...", ".98....6."),
    *("8...6...3", "4..8.3..1", "7...2...6"),
    *(".6....28.", "...419..5", "....8..79"),
]

# %%
# One variable per cell, one factor per pair that must differ.
graph = FactorGraph([9] * 81)
differ = graph.add_table(np.where(np.eye(9), -np.inf, 0.0))


def block(cell: int) -> tuple[int, int]:
    return cell // 27, cell % 9 // 3


for a, b in itertools.combinations(range(81), 2):
    if a // 9 == b // 9 or a % 9 == b % 9 or block(a) == block(b):
        graph.add_factor([a, b], differ)
known = {9 * r + c: int(x) - 1 for r, line in enumerate(puzzle) for c, x in enumerate(line) if x != "."}
result = fginfer.solve(graph, evidence=known)
answer = result.labels.reshape(9, 9) + 1
print(result.status)

# %%
figure, axis = plt.subplots(figsize=(3.6, 3.6))
for (r, c), digit in np.ndenumerate(answer):
    axis.text(c, r, digit, ha="center", va="center", color="black" if 9 * r + c in known else "tab:blue")
for k in range(10):
    axis.axhline(k - 0.5, color="k", lw=2 if k % 3 == 0 else 0.5)
    axis.axvline(k - 0.5, color="k", lw=2 if k % 3 == 0 else 0.5)
axis.set(xlim=(-0.5, 8.5), ylim=(8.5, -0.5), xticks=[], yticks=[])

# %%
# Colouring a graph is the same constraint on other edges. With two colours the Petersen graph has none:
# that is *proven*.
petersen = nx.petersen_graph()
for colours in (2, 3):
    for a, b in petersen.edges:
        petersen.edges[a, b]["table"] = np.where(np.eye(colours), -np.inf, 0.0)
    petersen.graph["labels"] = colours
    coloured = fginfer.solve(FactorGraph.from_networkx(petersen))
    print(colours, "colours:", coloured.status)

# %%
figure, axis = plt.subplots(figsize=(3.6, 3.6))
position = nx.shell_layout(petersen, [range(5, 10), range(5)])
nx.draw(petersen, position, axis, node_color=coloured.labels, cmap="Set2", with_labels=True)
