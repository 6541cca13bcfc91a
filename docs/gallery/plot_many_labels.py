"""
Decoding with a thousand labels
===============================

Chains as in pinyin input: every position allows all characters, one transition table is shared by all. The
oracles of gdmm look at a small part of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import FactorGraph

rng = np.random.default_rng(0)
touched = {}
sizes = (250, 500, 1000)
for characters in sizes:
    length = 12
    table = np.log(rng.dirichlet(np.full(characters, 0.05), size=characters) + 1e-9)
    unary = rng.normal(size=(length, characters))
    unary[np.arange(length), rng.integers(0, characters, length)] += 9
    edges = np.stack([np.arange(length - 1), np.arange(1, length)], 1)
    graph = FactorGraph.from_arrays(np.full(length, characters), unary, edges, tables=[table])
    result = fginfer.solve(graph, "gdmm", max_iterations=100, access="sorted", sweep="off")
    exact = fginfer.solve(graph)
    touched[characters] = result.statistics["entries_touched"] / max(1, result.statistics["oracle_calls"])
    print(
        f"{characters} labels: gdmm {result.score:.4f}, optimum {exact.score:.4f}, "
        f"{touched[characters]:.0f} of {characters**2} entries a call"
    )

# %%
figure, axis = plt.subplots(figsize=(4.5, 3))
axis.loglog(sizes, [n * n for n in sizes], "--", label="the whole table")
axis.loglog(sizes, [touched[n] for n in sizes], "o-", label="touched by a call of the oracle")
axis.set(xlabel="labels", ylabel="entries")
axis.legend()
figure.tight_layout()
