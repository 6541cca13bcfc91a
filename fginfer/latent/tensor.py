"""The tensor start of a mixture of regressions: moments of normal inputs give the components, roughly.

For x ~ N(0, I) and y = w_k.x with probability p_k, E[y^2 (xx' - I)] = 2 sum_k p_k w_k w_k', and the third-order
analogue is 6 sum_k p_k w_k (x) w_k (x) w_k. The first whitens the second, whose eigenvectors the power method finds
(Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014; Yi, Caramanis, Sanghavi 2016). Other inputs: a wrong model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def tensor_start(X: Reals, y: Reals, k: int, seed: int = 0, starts: int = 20, steps: int = 50) -> Reals:
    """(K, inputs) weights; K must not be above the number of inputs."""
    n, d = X.shape
    square = y * y
    second = ((X.T * square) @ X / n - square.mean() * np.eye(d)) / 2
    values, vectors = np.linalg.eigh(second)
    order = np.argsort(-np.abs(values))[:k]  # with few samples some come out negative
    lengths = np.sqrt(np.maximum(np.abs(values[order]), 1e-300))
    whiten, back = vectors[:, order] / lengths, vectors[:, order] * lengths
    inside = X @ whiten
    cubes = square * y
    third = np.einsum("n,na,nb,nc->abc", cubes, inside, inside, inside, optimize=True) / n
    mean, overlap = cubes @ inside / n, whiten.T @ whiten
    for pattern in ("a,bc->abc", "b,ac->abc", "c,ab->abc"):
        third -= np.einsum(pattern, mean, overlap)
    third /= 6
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(k):
        v = rng.standard_normal((starts, k))
        for _ in range(steps):
            v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
            v = np.einsum("abc,sb,sc->sa", third, v, v, optimize=True)
        v /= np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
        strengths = np.einsum("abc,sa,sb,sc->s", third, v, v, v, optimize=True)
        best = int(np.argmax(strengths))
        out.append(strengths[best] * (back @ v[best]))
        third -= strengths[best] * np.einsum("a,b,c->abc", v[best], v[best], v[best])
    return np.array(out)
