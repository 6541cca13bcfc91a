"""
Very many labels
================

A thousand labels, each of which likes a few words. The classifier is sparse in its weights and touches few of
them per row.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from fginfer.extreme import ExtremeClassifier

rng = np.random.default_rng(0)
labels, words, rows = 1000, 3000, 6000
likes = rng.integers(0, words, (labels, 6))
frequent = rng.zipf(1.6, rows) % labels
chosen = likes[frequent]
noise = rng.integers(0, words, (rows, 4))
columns = np.concatenate([chosen[:, :4], noise], 1)
X = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, 8)), (rows, words))
train, test = slice(0, 5000), slice(5000, rows)

# %%
model = ExtremeClassifier(random_state=0).fit(X[train], frequent[train])
top, _ = model.predict_topk(X[test], k=5)
hits = np.cumsum(np.asarray(top) == frequent[test][:, None], axis=1).mean(0)
print("the right label is among the first 1, 2, ... 5:", np.round(hits, 3))

# %%
figure, axis = plt.subplots(figsize=(4.5, 3))
axis.bar(range(1, 6), hits)
axis.set(xlabel="labels looked at", ylabel="share of test rows with the right one", ylim=(0, 1))
figure.tight_layout()
