"""
A network with a tenth of its weights
=====================================

A trained network is trimmed layer by layer: minimise the loss plus lambda times the absolute values of one layer's
weights, from where training left them. Most weights become zero; the digits are still told apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from fginfer.trim import Network, magnitude_prune, trim

digits = load_digits()
X, y = digits.data / 16, digits.target
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:1000], order[1000:]
network = Network([64, 40, 10], loss="margin", seed=0).fit(X[train], y[train], epochs=30, rate=3e-3)

# %%
# To the same sizes by removing the smallest weights, without training on: what trimming is to be compared with.
shares = (0.3, 0.1)
accuracy = {"trim": [], "smallest weights removed": []}
for share in shares:
    trimmed = trim(network, X[train], y[train], target=share, growth=2.0, max_iter=20)
    accuracy["trim"].append(trimmed.network.accuracy(X[test], y[test]))
    pruned, _ = magnitude_prune(network, trimmed.report.nonzeros)
    accuracy["smallest weights removed"].append(pruned.accuracy(X[test], y[test]))
    print(f"{trimmed.report.nonzeros} of {trimmed.report.size} weights: {accuracy['trim'][-1]:.1%} of new digits right")
print(trimmed.report)

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].axhline(network.accuracy(X[test], y[test]), color="gray", linestyle="--", label="trained, all weights")
for name, values in accuracy.items():
    axes[0].semilogx(shares, values, "o-", label=name)
axes[0].set(xlabel="share of weights kept", ylabel="accuracy on new digits")
axes[0].set_xticks(shares, [f"{share:.0%}" for share in shares])
axes[0].set_xticks([], minor=True)
axes[0].legend()
axes[1].imshow(np.abs(trimmed.network.weights[0]).sum(1).reshape(8, 8), cmap="magma")
axes[1].set(title="pixels that are still looked at", xticks=[], yticks=[])
figure.tight_layout()
