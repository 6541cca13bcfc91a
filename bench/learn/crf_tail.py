"""The tail of crf.py: how the last digits of the objective are come by, and what they wait for."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from fginfer.learn import ChainCRF


def tail(train, l1, memories=(10, 50, 100)):
    """f - f* over the last steps: how many steps each tenth part of it took. f*: the least of all."""
    runs = {}
    for memory in memories:
        start = time.process_time()
        crf = ChainCRF(
            l1=l1, fit_intercept=False, tol=1e-12, max_iter=3000, solver_options={"memory": memory, "max_inner": 50}
        )
        crf.fit(*train)
        runs[memory] = crf.history_
        print(f"memory {memory}: {crf.n_iter_} steps, {time.process_time() - start:.1f} s, {crf.primal_:.9f}, "
              f"{crf.n_nonzero_} non-zeros, violation {crf.gap_:.0e}, {crf.status_}", flush=True)  # fmt: skip
    best = min(p.objective for points in runs.values() for p in points)
    print(f"the tail, l1 {l1:g}, f* {best:.9f}: steps for each tenth part of (f - f*) / f*")
    for memory, points in runs.items():
        hits = [next((p.steps for p in points if p.objective <= best * (1 + level)), None)
                for level in 10.0 ** np.arange(-1, -14, -1)]  # fmt: skip
        more = [str(b - a) if a and b else "-" for a, b in pairwise(hits)]
        print(f"  memory {memory:>3}: 1e-1 after {hits[0]}, then {' '.join(more)}")


def exact_tail(train, l1):
    """The same with every model minimised exactly, and without the end of double precision: on the quadratic of the
    second derivatives at the optimum, over the weights that are not zero, whose signs have settled. Its minimum is the
    origin, so f - f* has all its digits however small it is. Steps a digit with 10 and 100 pairs and with all of them
    (BFGS, what Theorem 1 of Zhong et al. 2014 is about), for as many of the weights as are said."""
    crf = ChainCRF(l1=l1, fit_intercept=False, tol=1e-12, max_iter=3000, solver_options={"memory": 100}).fit(*train)
    support = np.flatnonzero(crf.weights_)
    _, loss = crf._prepare(*train)
    second = np.array([curvature(loss, crf.weights_, support, k) for k in range(len(support))])
    second = (second + second.T) / 2
    rng = np.random.default_rng(0)
    order = rng.permutation(len(support))
    for n in [n for n in (20, 50, 100, 200, 400) if n < len(support)] + [len(support)]:
        part = second[np.ix_(order[:n], order[:n])]
        values, start = np.linalg.eigvalsh(part), rng.standard_normal(n)
        print(f"  {n} weights, second derivatives from {values[0]:.2g} to {values[-1]:.2g}; steps a digit up to 1e-5, "
              "-10, -15, -20, -30, -40, -60, -80, -100")  # fmt: skip
        for memory in (10, 100, None):
            digits = quadratic(part, memory, start)
            title = "all pairs" if memory is None else f"{memory} pairs"
            print(f"    {title:>9}: {' '.join(steps_a_digit(digits))}", flush=True)


def curvature(loss, w, support, k, step=1e-4):
    """A row of second derivatives, by differences of gradients."""
    both = []
    for h in (step, -step):
        v = w.copy()
        v[support[k]] += h
        loss.value(v, support)
        both.append(loss.gradient(v, support))
    return (both[0] - both[1]) / (2 * step)


def quadratic(second, memory, x, least=-120):
    """log10 of f / f at the start, after every step of BFGS (memory None) or limited BFGS on f = x'Hx / 2."""
    pairs: list = []
    inverse = None
    g = second @ x
    f, scale = 0.5 * (x @ g), 0.0
    digits = [np.log10(f)]
    while digits[-1] - digits[0] > least and len(digits) < 5000:
        if not pairs:
            d = -g * (np.linalg.norm(g) / np.linalg.norm(second @ g))
        else:
            d = -inverse @ g if memory is None else two_loops(pairs, g)
        step, old = 1.0, g
        while True:
            moved = x + step * d
            g = second @ moved
            if 0.5 * (moved @ g) <= f + 1e-4 * step * (old @ d):
                break
            step /= 2
        x, f = moved, 0.5 * (moved @ g)
        s, y = step * d, g - old
        if memory is None:
            inverse = updated(inverse, s, y)
        pairs = [*pairs, (s, y)][-(memory or 1) :]
        digits.append(np.log10(f) + scale)
        if f < 1e-60:  # another unit: the model does not change with it
            x, g, f, scale = x * 1e25, g * 1e25, f * 1e50, scale - 50
            pairs = [(s * 1e25, y * 1e25) for s, y in pairs]
    return np.array(digits) - digits[0]


def updated(inverse, s, y):
    """BFGS's update of the inverse."""
    sy = s @ y
    if inverse is None:
        inverse = np.eye(len(s)) * (sy / (y @ y))
    v = inverse @ y
    return inverse + np.outer(s, s) * ((sy + y @ v) / sy**2) - (np.outer(v, s) + np.outer(s, v)) / sy


def two_loops(pairs, g):
    """-B^-1 g of limited BFGS."""
    d, shares = -g, []
    for s, y in reversed(pairs):
        shares.append((s @ d) / (s @ y))
        d = d - shares[-1] * y
    s, y = pairs[-1]
    d = d * ((s @ y) / (y @ y))
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        d = d + (share - (y @ d) / (s @ y)) * s
    return d


def steps_a_digit(digits, levels=(0, -5, -10, -15, -20, -30, -40, -60, -80, -100)):
    hits = [int(np.argmax(digits <= level)) if digits[-1] <= level else None for level in levels]
    return [
        "-" if b is None else f"{(b - a) / (x - y):.1f}"
        for (a, b), (x, y) in zip(pairwise(hits), pairwise(levels), strict=True)
    ]
