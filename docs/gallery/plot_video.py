"""
A video: solving again
======================

Frame after frame has the same structure and nearly the same numbers. ``solve_many`` with ``warm=True`` solves each from
the one before; the answers are those of new solves, with the same proofs.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fginfer
from fginfer import FactorGraph, Potts

# %%
# A window moves slowly over the photograph of a flower: twenty frames of 60 x 80 pixels, with noise.
photo = load_sample_image("flower.jpg")[::4, ::4].astype(float)
redness = (photo[..., 0] - photo[..., 1]) / 64 - 0.3
rng = np.random.default_rng(0)
frames = [redness[20:80, 20 + k : 100 + k] for k in range(20)]
unaries = np.stack([np.stack([np.zeros(f.shape), f + rng.normal(0, 0.02, f.shape)], -1) for f in frames])
graph = FactorGraph.grid((60, 80), unaries[0], Potts(0, -0.5))

# %%
seconds = {}
answers = {}
for warm in (False, True):
    began = time.perf_counter()
    rows = unaries.reshape(len(frames), -1, 2)
    answers[warm] = fginfer.solve_many(graph, unaries=rows, warm=warm, workers=1)
    seconds["from the frame before" if warm else "each anew"] = time.perf_counter() - began
print({how: f"{1000 * s / len(frames):.1f} ms a frame" for how, s in seconds.items()})
assert np.allclose([r.score for r in answers[True]], [r.score for r in answers[False]], rtol=1e-5)

# %%
figure, axes = plt.subplots(2, 4, figsize=(10, 4))
for column, k in zip(axes.T, (0, 6, 12, 19), strict=True):
    column[0].imshow(photo[20:80, 20 + k : 100 + k].astype(np.uint8))
    column[0].set(title=f"frame {k}")
    column[1].imshow(answers[True][k].labels.reshape(60, 80), cmap="gray")
    for axis in column:
        axis.set(xticks=[], yticks=[])
figure.tight_layout()
