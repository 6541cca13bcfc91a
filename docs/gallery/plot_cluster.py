"""
Many models on a Dask cluster
=============================

Two hundred small models, spread over the workers of a cluster. Here it runs on this machine; on several, start
``dask scheduler`` on one, ``dask worker ADDRESS`` on all, and give the address instead of the client.
"""

import distributed
import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer import FactorGraph, Potts

rng = np.random.default_rng(0)
strengths = np.repeat(np.linspace(0, 2, 20), 10)
graphs = [FactorGraph.grid((8, 8), rng.normal(size=(8, 8, 3)), Potts(0, -s)) for s in strengths]

with (
    distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
    distributed.Client(cluster) as client,
):
    results = fginfer.solve_many(graphs, client=client)
print(sum(r.is_optimal for r in results), "of", len(results), "proven optimal")

# %%
# The stronger the neighbours pull, the fewer borders remain.
borders = [
    (np.diff(r.labels.reshape(8, 8), axis=0) != 0).sum() + (np.diff(r.labels.reshape(8, 8), axis=1) != 0).sum()
    for r in results
]
figure, axis = plt.subplots(figsize=(4.5, 3))
axis.plot(strengths, borders, ".", alpha=0.4)
axis.plot(strengths[::10], np.reshape(borders, (20, 10)).mean(1))
axis.set(xlabel="strength of the pairs", ylabel="pairs with different labels")
figure.tight_layout()
