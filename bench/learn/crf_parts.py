"""Parts of crf.py that compare no optimisers: random splits, threads, all labels of pinyin."""

from __future__ import annotations

import time

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
