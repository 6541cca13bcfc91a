"""zh_pinyin: chains with 4424 labels; factorwise oracles against structured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.common.clock import cpu, peak_mb
from bench.learn import learning_data as sets
from bench.learn.learning_runs import draw, last_rows, run, show
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.solvers.registry import make_solver


def bench_pinyin(folder: Path, out: Path | None, full: bool) -> None:
    task = sets.pinyin(folder)
    print(f"\n== zh_pinyin, {task.train.n_labels} labels at every token, {task.train.token_begin[-1]} tokens")
    ids, candidates, test_ids, test_truth = task.extra
    part = sets.subset(task.test, np.arange(2000))
    compare_oracles(sets.subset(task.train, np.arange(500)), part, test_truth[: part.token_begin[-1]], out)
    judge = Learner(task.test)
    some = 20000 if not full else task.train.n_examples
    train = sets.subset(task.train, np.arange(some)) if not full else task.train

    def accuracy(solver: Any) -> float:
        return 100 * float(np.mean(judge.decode(solver.weights()).labels == test_truth))

    C = choose_C(task)
    print(f"training on {some} sequences, C = {C} (held-out), tested on {task.test.n_examples}")
    solver, spent = make_solver("gdmm", Learner(train), None, C, 0, {}), 0.0
    for done in range(1, 5):
        spent += cpu(lambda s=solver: s.advance(np.inf))[0]
        info = solver.info
        print(
            f"gdmm, all labels, pass {done}: {spent:6.1f} s, {info.pair_touched / info.pair_calls:.1f} entries a call, "
            f"accuracy {accuracy(solver):.2f} %, memory {peak_mb() / 1024:.2f} GB"
        )
    del solver
    sets.set_candidates(train, [candidates[s] for s in ids[: train.token_begin[-1]]])
    sets.set_candidates(task.test, [candidates[s] for s in test_ids])
    task.test.truth = task.test.choice[task.test.choice_begin[:-1]]
    judge = Learner(task.test)
    print("with candidate lists per syllable, in training and test:")
    for name in ("gdmm", "bcfw", "perceptron"):
        solver = make_solver(name, Learner(train), None, C, 0, {"cached_passes": 0} if name == "bcfw" else {})
        spent = cpu(lambda s=solver: [s.advance(np.inf) for _ in range(4)])[0]
        print(f"{name:<10} 4 passes {spent:6.1f} s, accuracy {accuracy(solver):.2f} %")


def choose_C(task: sets.Task) -> float:
    """The best of a few values after two passes over 10000 sequences, on 2000 others of the training set."""
    rest, held = (sets.subset(task.train, np.arange(*part)) for part in ((10000,), (10000, 12000)))
    judge = Learner(held)

    def right(C: float) -> float:
        solver = make_solver("gdmm", Learner(rest), None, C, 0, {})
        for _ in range(2):
            solver.advance(np.inf)
        return float(np.mean(judge.decode(solver.weights()).labels == held.truth))

    return max((0.05, 0.2, 0.8), key=right)


def compare_oracles(few: Encoded, test: Encoded, test_truth: Any, out: Path | None, C: float = 0.2) -> None:
    """One pass with each oracle on the same sequences, then the time to equal primal objectives."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "gdmm": ("gdmm", {}), "gdmm, brute force": ("gdmm", {"brute_force": True}),
        "bcfw": ("bcfw", {"cached_passes": 0}),
        "bcfw, dense Viterbi": ("bcfw", {"cached_passes": 0, "brute_force": True}),
    }  # fmt: skip
    first = {}
    for kind, (name, options) in kinds.items():
        solver = make_solver(name, Learner(few), None, C, 0, options)
        first[kind] = cpu(lambda s=solver: s.advance(np.inf))[0]
        note = ""
        if name == "gdmm":
            note = f", {solver.info.pair_touched / solver.info.pair_calls:.1f} entries a pairwise oracle call"
        print(
            f"{kind:<20} pass over {few.n_examples} sequences {first[kind]:7.2f} s, {first[kind] / first['gdmm']:4.0f}x"
            f"{note}"
        )
    judge = Learner(test)

    def error(w: Any) -> float:
        return float(np.mean(judge.decode(w).labels != test_truth))

    every = range(1, 41)
    rows = run("gdmm", few, C, 40, error, {"primal": "exact"}, stops=every)
    rows += run("bcfw", few, C, 15, error, {"cached_passes": 0}, stops=every)
    rows += run("perceptron", few, C, 15, error)
    show(last_rows(rows))
    draw("zh_pinyin 500 sequences", rows, out)
    print("CPU seconds to equal primal objectives; brute force and dense Viterbi: the pass above times the passes")
    curve, levels = ([r for r in rows if r["solver"] == name] for name in ("gdmm", "bcfw"))
    for level in (levels[p - 1] for p in (1, 2, 3, 5, 8, 12)):
        equal = next((r for r in curve if r["primal"] <= level["primal"]), None)
        if equal is None:
            print(f"primal {level['primal']:.1f}: gdmm did not get there in {len(curve)} passes")
            continue
        brute, dense = equal["passes"] * first["gdmm, brute force"], level["passes"] * first["bcfw, dense Viterbi"]
        print(
            f"primal {level['primal']:6.1f}: gdmm {equal['seconds']:6.2f} s ({equal['passes']} passes); brute force "
            f"{brute / equal['seconds']:4.0f}x, dense Viterbi {dense / equal['seconds']:4.0f}x ({level['passes']} "
            f"passes), Viterbi that skips rows {level['seconds'] / equal['seconds']:.1f}x"
        )
