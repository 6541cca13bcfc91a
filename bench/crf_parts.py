"""Parts of bench/crf.py that compare no optimisers: accuracy against time, the tail, threads, all labels of pinyin."""

from __future__ import annotations

import time

import numpy as np

from fginfer.learn import ChainCRF
from fginfer.learn.crf.solver import CrfSolver


def accuracy_against_time(train, test, measure, l1, args):
    """Figure 7 of Zhong et al.: what the model gets right on test data, while it is trained. Training time only."""
    print(f"\naccuracy against time, l1 {l1:g}")
    for method in args.methods:
        crf = ChainCRF(l1=l1, fit_intercept=False, n_jobs=args.threads)
        begin = time.process_time()
        data, loss = crf._prepare(*train)
        solver = CrfSolver(method, loss, data, l1, 0.0, args.tol, 0, {})
        spent, following = time.process_time() - begin, 0.0
        while True:
            begin = time.process_time()
            solver.advance(np.inf)
            spent += time.process_time() - begin
            over = solver.wants_certificate(args.tol) or bool(args.limit and spent > args.limit)
            if spent < following and not over:
                continue
            following = max(0.5, 1.4 * spent)
            crf.weights_ = solver.weights()
            right = measure(crf.predict(test[0], test[2]), test[1], test[2])
            last = solver.history[-1]
            print(f"{method:<9} {spent:7.1f} s  {last.steps:5d} steps  objective {last.objective:12.2f}  "
                  f"{last.nonzeros:6d} non-zeros  test {right:.4f}", flush=True)  # fmt: skip
            if over:
                break


def tail(train, l1):
    """f - f* over the last steps, with a memory that holds them: the factor by which each lowers it goes down."""
    crf = ChainCRF(
        l1=l1, fit_intercept=False, tol=1e-12, max_iter=5000, solver_options={"memory": 100, "max_inner": 200}
    )
    crf.fit(*train)
    best = min(p.objective for p in crf.history_)
    error = [(p.steps, (p.objective - best) / best) for p in crf.history_]
    print(f"\nthe tail, l1 {l1:g}: {len(error)} steps, f* {best:.9f}, {crf.n_nonzero_} non-zeros, {crf.status_}")
    for level in 10.0 ** np.arange(-1, -14, -1):
        hit = next((steps for steps, e in error if e <= level), None)
        print(f"  {level:.0e} after {hit} steps")


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
    alike, cannot be pruned. Without pruning only the first `whole` sequences are summed."""
    alone = ChainCRF(l1=l1, fit_intercept=False, pairwise=False, max_iter=60, tol=1e-4)
    alone._known_classes = lambda: labels
    start = time.process_time()
    alone.fit(X, y, begin)
    k = len(alone.classes_)
    print(f"tokens alone: {alone.n_iter_} steps, {time.process_time() - start:.1f} s, {alone.n_nonzero_} non-zeros")
    code = np.searchsorted(alone.classes_, y)
    inner = np.setdiff1d(np.arange(1, len(y)), begin)
    table = np.zeros((k, k))
    np.add.at(table, (code[inner - 1], code[inner]), 1.0)
    w = np.concatenate([alone.weights_, np.log1p(table).ravel()])
    for count, prune in (
        (whole, 0.0),
        (whole, 1e-6),
        (len(begin) - 1, 1e-3),
        (len(begin) - 1, 1e-6),
        (len(begin) - 1, 1e-9),
    ):
        last = begin[count]
        crf = ChainCRF(l1=l1, fit_intercept=False, prune=prune)
        crf._known_classes = lambda: labels
        _, loss = crf._prepare(X[:last], y[:last], begin[: count + 1])
        marks = [time.process_time()]
        value = loss.value(w)
        marks.append(time.process_time())
        loss.gradient(w, np.flatnonzero(w))
        marks.append(time.process_time())
        info = loss.info
        print(f"{count} sequences, {last} tokens, prune {prune:g}: value {marks[1] - marks[0]:.2f} s, gradient "
              f"{marks[2] - marks[1]:.2f} s, loss {value:.6f}, labels summed a token {info.summed / last:.1f} of {k}, "
              f"lost at most {info.lost:.1e} of an example, slack {info.slack:.1e}", flush=True)  # fmt: skip
