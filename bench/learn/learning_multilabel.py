"""Label sets with and without interactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.common.clock import cpu
from bench.learn import learning_data as sets
from bench.learn.learning_runs import draw, last_rows, run, show
from fginfer.learn.data.encode import encode
from fginfer.learn.data.inputs import decode_output
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import exact_match, micro_f1
from fginfer.learn.solvers.registry import make_solver


def bench_multilabel(folder: Path, out: Path | None) -> None:
    print("\n== Multilabel with pairwise interactions")
    rng = np.random.default_rng(0)
    n, labels, features = 300, 2000, 300
    X = (rng.random((n, features)) < 0.03).astype(float)
    Y = np.zeros((n, labels), int)
    for row in Y:
        group = 10 * rng.integers(labels // 10)
        row[group + rng.choice(10, 4, replace=False)] = 1
    seconds = {}
    for brute in (False, True):
        data, _ = encode("multilabel", X, Y)
        solver = make_solver("gdmm", Learner(data), None, 1.0, 0, {"brute_force": brute})
        solver.advance(np.inf)  # from w = 0 the first pass finds nothing to sort
        seconds[brute] = cpu(lambda s=solver: [s.advance(np.inf) for _ in range(3)])[0] / 3
        info = solver.info
        name = "scan" if brute else "sorted"
        touched = info.pair_touched / info.pair_calls
        print(f"synthetic, 2000 labels, {name}: pass {seconds[brute]:.3f} s, {touched:.0f} entries a call")
    print(f"joint oracle: {seconds[True] / seconds[False]:.0f}x")
    for name in ("yeast", "bibtex", "rcv1sub1"):
        X, Y, Xt, Yt = sets.multilabel(folder, name)
        order = np.random.default_rng(0).permutation(len(Y))
        held, rest = order[: len(Y) // 5], order[len(Y) // 5 :]
        for pairs in (False, True):
            trials = [r for C in (1.0, 3.0, 10.0) for r in fit_sets(X[rest], Y[rest], X[held], Y[held], pairs, C, 20)]
            best = max(trials, key=lambda r: r["micro-F1"])  # C and the number of passes, both on held-out examples
            last = fit_sets(X, Y, Xt, Yt, pairs, best["C"], best["passes"])[-1]
            print(
                f"{name:<9} {'pairs' if pairs else 'plain'}  C {last['C']:<3g} {last['passes']:>3} passes "
                f"{last['seconds']:6.2f} s  micro-F1 {100 * last['micro-F1']:.2f}  exact {100 * last['exact']:.2f}  "
                f"gap {last['gap']:.1e}  interactions {last['interactions']}"
            )
            if not pairs:
                against_all(X, Y, Xt, Yt, best["C"])
            if name != "rcv1sub1":
                compare_solvers(name, X, Y, Xt, Yt, pairs, best["C"], out)


def compare_solvers(name: str, X: Any, Y: Any, Xt: Any, Yt: Any, pairs: bool, C: float, out: Path | None) -> None:
    """All solvers; those with a structured oracle have it exact without interactions, by local search with them."""
    data, classes = encode("multilabel", X, Y, pairwise=pairs)
    judge = Learner(encode("multilabel", Xt, None, classes=classes, pairwise=pairs)[0])

    def error(w: Any) -> float:
        return 1 - micro_f1(Yt, decode_output("multilabel", judge.decode(w), classes, False))

    solvers = ("gdmm", "soft-bcfw", "bcfw", "ssg", "dcd", "perceptron", "mira")
    rows = [r for solver in solvers for r in run(solver, data, C, 20, error)]
    show(last_rows(rows))
    draw(f"{name} {'with' if pairs else 'without'} interactions", rows, out)


def fit_sets(X: Any, Y: Any, Xt: Any, Yt: Any, pairs: bool, C: float, passes: int) -> list[dict[str, Any]]:
    """gdmm on label sets, judged on Xt and Yt after 5, 10, 20 and `passes` passes."""
    data, classes = encode("multilabel", X, Y, pairwise=pairs)
    test, _ = encode("multilabel", Xt, None, classes=classes, pairwise=pairs)
    judge, solver, spent, rows = Learner(test), make_solver("gdmm", Learner(data), None, C, 0, {}), 0.0, []
    for done in range(1, passes + 1):
        spent += cpu(lambda: solver.advance(np.inf))[0]
        if done in (5, 10, 20, passes):
            weights = solver.weights()
            answer = decode_output("multilabel", judge.decode(weights), classes, False)
            upper, lower, _ = solver.certificate()
            table = weights[-(len(classes) ** 2) :] if pairs else np.zeros(1)
            rows.append(
                {"C": C, "passes": done, "seconds": spent, "micro-F1": micro_f1(Yt, answer),
                 "exact": exact_match(Yt, answer), "gap": (upper - lower) / upper,
                 "interactions": int((np.abs(table) > 1e-6).sum())}
            )  # fmt: skip
    return rows


def against_all(X: Any, Y: Any, Xt: Any, Yt: Any, C: float) -> None:
    """The peer: one linear SVM a label."""
    try:
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC
    except ImportError:
        return
    spent, model = cpu(lambda: OneVsRestClassifier(LinearSVC(C=C, loss="hinge", max_iter=2000)).fit(X, Y))
    answer = model.predict(Xt)
    print(
        f"          liblinear, one against all  {spent:6.2f} s  micro-F1 {100 * micro_f1(Yt, answer):.2f}  "
        f"exact {100 * exact_match(Yt, answer):.2f}"
    )
