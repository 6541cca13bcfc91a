"""
An answer that need not be believed
===================================

A solver that says *optimal* can be wrong. Here the run writes a proof, a program that shares no code with it checks the
proof in whole numbers, and a damaged proof is found out.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fginfer
from fginfer import FactorGraph, Potts
from fginfer.checker import verify

# %%
# A flower is told from its background: two labels for each of 1,760 pixels, scores in hundredths.
flower = load_sample_image("flower.jpg")[::10, 100:500:10].astype(float)
redness = (flower[..., 0] - flower[..., 1]) / 64
unary = np.round(np.stack([np.zeros(redness.shape), redness - 0.3], axis=-1), 2)
graph = FactorGraph.grid(redness.shape, unary, Potts(0, -0.5))

folder = Path(tempfile.mkdtemp())
model, proof = folder / "flower.npz", folder / "flower.proof"
fginfer.write(graph, model)
result = fginfer.solve(model, proof=proof)
print(f"{result.status}, proof {result.proof}: {proof.stat().st_size:,} bytes, the model {model.stat().st_size:,}")

# %%
# ``fginfer verify flower.npz flower.proof`` does the same.
checked = verify(str(model), str(proof))
print(checked.kind, checked)

# %%
# One byte of the proof is changed, a hundred times over: no damaged proof passes for a proof of something false.
whole = proof.read_bytes()
rng = np.random.default_rng(0)
rejected = 0
for at in rng.integers(9, len(whole), 100):
    damaged = bytearray(whole)
    damaged[at] ^= 1 << int(rng.integers(8))
    proof.write_bytes(damaged)
    try:
        verify(str(model), str(proof))
    except Exception:
        rejected += 1
print(f"{rejected} of 100 damaged proofs are rejected")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2))
axes[0].imshow(flower.astype(np.uint8))
axes[0].set(title="seen", xticks=[], yticks=[])
axes[1].imshow(result.labels.reshape(redness.shape), cmap="gray")
axes[1].set(title=f"{result.status}, and verified", xticks=[], yticks=[])
figure.tight_layout()
