"""Parts of bench/crf.py that compare no optimisers: random splits, the tail, threads, all labels of pinyin."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from fginfer.learn import ChainCRF
from fginfer.learn.crf.solver import CrfSolver


def split(seed, train, test, l1, tol):
    """One random split of OCR, with the bias and without: non-zeros, and letters right by the best sequence and by the
    best marginals."""
    for last in (None, -1):
        rows, others = train[0][:, :last], test[0][:, :last]
        crf = ChainCRF(l1=l1, tol=tol, fit_intercept=False, max_iter=100_000).fit(rows, *train[1:])
        best = np.mean(crf.predict(others, test[2]) == test[1])
        marginal = np.mean(crf.classes_[crf.predict_proba(others, test[2]).argmax(1)] == test[1])
        print(f"split {seed}, l1 {l1:g}, {'no' if last else 'with'} bias: {crf.primal_:.2f}, {crf.n_nonzero_} non-zeros"
              f", right: best sequence {best:.4f}, best marginals {marginal:.4f}; violation {crf.gap_:.0e}",
              flush=True)  # fmt: skip


def tail(train, l1, memories=(10, 50, 100)):
    """f - f* over the last steps: how many steps each tenth part of it took. With a memory that holds them, and a model
    that is solved well, these get fewer and fewer; with a short one they stay about the same. f*: the least of all."""
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


def exact_tail(train, l1, memories=(10, 100, None)):
    """The tail with every model minimised exactly: from a point where the support has settled, signs fixed, so that the
    problem is smooth and a step is -B^-1 g by two loops (None: all pairs since then, that is BFGS); and Newton's steps
    with second derivatives by differences of gradients. Says whether the inner solves or the pairs make it linear."""
    crf = ChainCRF(l1=l1, fit_intercept=False, tol=1e-12, max_iter=3000, solver_options={"memory": 100}).fit(*train)
    best, support, sign = crf.weights_, np.flatnonzero(crf.weights_), np.sign(crf.weights_)
    for tol in 10.0 ** -np.arange(2.0, 10.0):
        start = ChainCRF(l1=l1, fit_intercept=False, tol=tol, max_iter=3000).fit(*train).weights_
        if np.array_equal(np.sign(start), sign):
            break
    _, loss = crf._prepare(*train)
    w = np.zeros_like(best)

    def at(v):
        w[support] = v
        return loss.value(w, support) + l1 * np.abs(v).sum() if (v * sign[support] > 0).all() else np.inf

    def slope(v):
        return loss.gradient(w, support) + l1 * sign[support]

    def curvature(v):
        columns = []
        for k in range(len(v)):
            both = []
            for h in (1e-5, -1e-5):
                at(v + h * (np.arange(len(v)) == k))
                both.append(slope(v))
            columns.append((both[0] - both[1]) / 2e-5)
        return (np.array(columns) + np.array(columns).T) / 2

    second = curvature(best[support])
    values = np.linalg.eigvalsh(second)
    least = at(best[support])
    print(f"signs settled at a violation of {tol:.0e}; {len(support)} weights, eigenvalues of the second derivatives "
          f"from {values[0]:.1e} to {values[-1]:.1e}, {np.sum(values < 1e-6 * values[-1])} below 1e-6 of the largest, "
          f"median {np.median(values):.1e}")  # fmt: skip
    for name in [*memories, "newton"]:
        v, pairs, f = start[support], [], at(start[support])
        g, gaps = slope(v), [f / least - 1]
        while len(gaps) < 1500 and gaps[-1] > 1e-13:
            d = -np.linalg.lstsq(second, g, rcond=1e-10)[0] if name == "newton" else two_loops(pairs, name, g)
            step, before = 1.0, f
            while (f := at(v + step * d)) > before + 1e-4 * step * (g @ d) + 4e-16 * before and step > 1e-9:
                step /= 2
            if step <= 1e-9:
                break
            v, old = v + step * d, g
            g = slope(v)
            pairs.append((step * d, g - old))
            gaps.append(f / least - 1)
        hits = [next((k for k, x in enumerate(gaps) if x <= level), None) for level in 10.0 ** np.arange(-5, -14, -1)]
        more = [str(b - a) if a is not None and b is not None else "-" for a, b in pairwise(hits)]
        title = "newton" if name == "newton" else "all pairs" if name is None else f"{name} pairs"
        print(f"  exact steps, {title}: from {gaps[0]:.0e}; 1e-5 after {hits[0]}, then {' '.join(more)}", flush=True)


def two_loops(pairs, memory, g):
    """-B^-1 g of the last pairs; with all of them (None) the first one's scale stays, as in BFGS."""
    used = pairs if memory is None else pairs[-memory:]
    if not used:
        return -g / max(1.0, np.linalg.norm(g))
    d, shares = -g, []
    for s, y in reversed(used):
        shares.append((s @ d) / (s @ y))
        d = d - shares[-1] * y
    s, y = used[0 if memory is None else -1]
    d = d * ((s @ y) / (y @ y))
    for (s, y), share in zip(used, reversed(shares), strict=True):
        d = d + (share - (y @ d) / (s @ y)) * s
    return d


def threads(train, l1):
    """Seconds by the wall clock of the same 12 steps with one and two threads, alternately; the bits are equal."""
    print(f"\nthreads, l1 {l1:g}: {len(train[2]) - 1} examples")
    least: dict[int, float] = {}
    weights: dict[int, bytes] = {}
    for _ in range(3):
        for n in (1, 2):
            crf = ChainCRF(l1=l1, fit_intercept=False, n_jobs=n, max_iter=12)
            data, loss = crf._prepare(*train)
            solver = CrfSolver("proxqn", loss, data, l1, 0.0, 1e-9, 0, {})
            begin = time.perf_counter()
            while len(solver.history) < 12:
                solver.advance(np.inf)
            least[n] = min(least.get(n, np.inf), time.perf_counter() - begin)
            weights[n] = solver.weights().tobytes()
    assert weights[1] == weights[2]
    print(f"1 thread {least[1]:.2f} s, 2 threads {least[2]:.2f} s: {least[1] / least[2]:.2f} times as fast, equal bits")


def all_labels(X, y, begin, labels, l1, whole):
    """What a value and a gradient cost with every label at every token, and what pruning saves. The weights are those
    of tokens alone (a few steps), the transitions the logs of smoothed counts: sums at w = 0, where all labels are
    alike, cannot be pruned. Transitions are zero but for the pairs that were seen, and sums go over those; with 1e-300
    instead of zeros they go over all pairs, for the first `whole` sequences only."""
    alone = ChainCRF(l1=l1, fit_intercept=False, pairwise=False, max_iter=60, tol=1e-4)
    alone._known_classes = lambda: labels
    start = time.process_time()
    alone.fit(X, y, begin)
    k = len(alone.classes_)
    print(f"l1 {l1:g}, tokens alone: {alone.n_iter_} steps, {time.process_time() - start:.1f} s, {alone.n_nonzero_} "
          "non-zeros")  # fmt: skip
    code = np.searchsorted(alone.classes_, y)
    inner = np.setdiff1d(np.arange(1, len(y)), begin)
    table = np.zeros((k, k))
    np.add.at(table, (code[inner - 1], code[inner]), 1.0)
    sparse = np.concatenate([alone.weights_, np.log1p(table).ravel()])
    dense = sparse.copy()
    dense[-k * k :][table.ravel() == 0] = 1e-300
    every = len(begin) - 1
    for count, prune, w in (
        (whole, 0.0, dense), (whole, 1e-3, dense), (whole, 0.0, sparse), (whole, 1e-3, sparse), (every, 0.0, sparse),
    ):  # fmt: skip
        last = begin[count]
        crf = ChainCRF(l1=l1, fit_intercept=False, prune=prune)
        crf._known_classes = lambda: labels
        _, loss = crf._prepare(X[:last], y[:last], begin[: count + 1])
        marks = [time.process_time()]
        value = loss.value(w)
        marks.append(time.process_time())
        loss.gradient(w, np.flatnonzero(sparse))
        marks.append(time.process_time())
        info = loss.info
        pairs = "all pairs" if w is dense else "pairs with weights"
        print(f"{count} sequences, {last} tokens, {pairs}, prune {prune:g}: value {marks[1] - marks[0]:.2f} s, "
              f"gradient {marks[2] - marks[1]:.2f} s, loss {value:.6f}, labels summed a token {info.summed / last:.1f} "
              f"of {k}, lost at most {info.lost:.1e} of an example, slack {info.slack:.1e}", flush=True)  # fmt: skip
