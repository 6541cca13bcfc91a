"""Learning solvers side by side, on the sets of a folder, with peers when they can be imported.

usage: learning.py DATASETS_DIR [--only viterbi,ocr,conll,pinyin,multilabel,parse] [--out DIR] [--full]

Prints tables; with --out also draws primal suboptimality and test error against time and passes. Seconds are CPU
seconds of this process. C is chosen on held-out training data. --full adds the long runs (all of zh_pinyin, L-BFGS).
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import learning_data as sets
import numpy as np

from fginfer.learn.data import Encoded
from fginfer.learn.encode import encode
from fginfer.learn.inputs import decode_output
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import chunk_f1, exact_match, micro_f1
from fginfer.learn.solvers import make_solver


def timed(work: Any) -> tuple[float, Any]:
    start = time.process_time()
    out = work()
    return time.process_time() - start, out


def run(
    name: str, data: Encoded, C: float, passes: int, look: Any, options: dict[str, Any] | None = None
) -> list[dict]:
    """Trains, measuring outside the clock after passes 1, 2, 3, 5, 7, 10 ...; look(weights) gives the test error."""
    learner = Learner(data)
    solver = make_solver(name, learner, None, C, 0, options or {})
    spent, rows = 0.0, []
    stops = sorted({1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, passes})
    for done in range(1, passes + 1):
        spent += timed(lambda: solver.advance(np.inf))[0]
        if done in stops:
            m = solver.measure()
            rows.append(
                {"solver": name, "passes": done, "seconds": spent, "primal": m.primal, "dual": m.dual, "gap": m.gap,
                 "infeasibility": m.infeasibility, "error": look(solver.weights()), "calls": solver.counters()[0]}
            )  # fmt: skip
    return rows


def show(rows: list[dict]) -> None:
    def cell(x: Any, form: str) -> str:
        return "-" if x is None else format(x, form)

    print(f"{'solver':<14}{'passes':>7}{'seconds':>9}{'primal':>12}{'dual':>12}{'gap':>10}{'infeas':>9}{'error %':>9}")
    for r in rows:
        print(
            f"{r['solver']:<14}{r['passes']:>7}{r['seconds']:>9.3f}{cell(r['primal'], '.5g'):>12}"
            f"{cell(r['dual'], '.5g'):>12}{cell(r['gap'], '.1e'):>10}{cell(r['infeasibility'], '.1e'):>9}"
            f"{100 * r['error']:>9.2f}"
        )


def draw(title: str, rows: list[dict], out: Path | None) -> None:
    """Primal suboptimality (against the best dual bound) and error against time and passes."""
    if out is None:
        return
    try:
        import matplotlib
    except ImportError:
        print("matplotlib: not importable, nothing drawn")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import ScalarFormatter

    hinge = [r for r in rows if r["solver"] != "dcd"]  # dcd has another objective: its bound is none for the others
    best = max((r["dual"] for r in hinge if r["dual"] is not None), default=0.0)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), sharey="row", layout="constrained")
    for name in dict.fromkeys(r["solver"] for r in rows):
        own = [r for r in rows if r["solver"] == name]
        for column, x in enumerate(("seconds", "passes")):
            with_primal = [r for r in own if r["primal"] is not None and r in hinge]
            gaps = [max(1e-7, (r["primal"] - best) / best) for r in with_primal]
            axes[0][column].loglog([r[x] for r in with_primal], gaps, label=name)
            axes[1][column].loglog([r[x] for r in own], [100 * r["error"] for r in own], label=name)
            axes[0][column].set(xlabel=x, ylabel="primal suboptimality, relative")
            axes[1][column].set(xlabel=x, ylabel="test error %")
    axes[1][0].yaxis.set_major_formatter(ScalarFormatter())
    axes[1][0].yaxis.set_minor_formatter(ScalarFormatter())
    axes[1][1].legend(fontsize=8)
    figure.suptitle(title)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{title.split()[0]}.png", dpi=120)
    plt.close(figure)


def choose_C(data: Encoded, grid: tuple[float, ...], passes: int) -> float:
    """Trains on four fifths of the examples, looks at the fifth."""
    order = np.random.default_rng(0).permutation(data.n_examples)
    cut = data.n_examples // 5
    held, rest = sets.subset(data, np.sort(order[:cut])), sets.subset(data, np.sort(order[cut:]))
    judge = Learner(held)

    def error(C: float) -> float:
        look = run("bcfw", rest, C, passes, lambda w: float(np.mean(judge.decode(w).labels != held.truth)))
        return float(look[-1]["error"])

    return min(grid, key=error)


def bench_viterbi() -> None:
    print("\n== Viterbi, table entries per second and core")
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    for k, length, n in ((26, 20, 400), (128, 20, 100), (1000, 20, 5), (4424, 6, 1)):
        rows = sp.csr_matrix(np.ones((n * length, 1)))
        data = Encoded(0, 1, np.arange(n + 1, dtype=np.int64) * length, rows, k, np.zeros(n * length, np.int32))
        learner = Learner(data)
        w = rng.normal(size=learner.dimension)
        learner.decode(w)
        best = min(timed(lambda: learner.decode(w))[0] for _ in range(5))  # noqa: B023
        print(f"K = {k:5d}: {n * (length - 1) * k * k / best:.2e}")


def bench_ocr(folder: Path, out: Path | None) -> None:
    task = sets.ocr(folder)
    C = choose_C(task.train, (0.01, 0.03, 0.1, 0.3), 20)
    print(f"\n== OCR small, C = {C} (held-out)")
    judge = Learner(task.test)

    def error(w: Any) -> float:
        return float(np.mean(judge.decode(w).labels != task.test.truth))

    rows = []
    plans: list[tuple[str, int, dict[str, Any]]] = [
        ("bcfw", 60, {}), ("gdmm", 200, {}), ("cutting-plane", 300, {}), ("fw", 100, {}), ("ssg", 100, {}),
        ("dcd", 30, {}), ("perceptron", 30, {}), ("mira", 30, {}), ("soft-bcfw", 100, {}),
    ]  # fmt: skip
    for name, passes, options in plans:
        rows += run(name, task.train, C, passes, error, options)
    plain = run("bcfw", task.train, C, 10, error, {"cached_passes": 0})
    last = {r["solver"]: r for r in rows}
    show(list(last.values()))
    print("10 plain passes of bcfw:")
    show(plain[-1:])
    draw("ocr small", rows, out)


def bench_conll(folder: Path, full: bool, out: Path | None) -> None:
    seconds, task = timed(lambda: sets.conll(folder))
    C = choose_C(task.train, (0.03, 0.1, 0.3), 5)
    print(f"\n== CoNLL-2000, C = {C} (held-out); reading {seconds:.1f} s, {task.train.rows.shape[1]} features")
    judge, (sentences, truth) = Learner(task.test), task.extra

    def error(w: Any) -> float:
        return 1 - chunk_f1(truth, [task.classes[a] for a in judge.decode(w).split()])

    rows = []
    for name, passes in (("bcfw", 10), ("perceptron", 15), ("dcd", 7), ("mira", 10), ("gdmm", 20)):
        rows += run(name, task.train, C, passes, error)
    print("error = 100 - chunk F1")
    show(list({r["solver"]: r for r in rows}.values()))
    draw("conll2000", rows, out)
    try:
        import pycrfsuite
    except ImportError:
        print("python-crfsuite: not importable")
        return
    names = task.train.rows.shape[1]

    def items(data: Encoded, i: int) -> list[list[str]]:
        first, last = data.token_begin[i], data.token_begin[i + 1]
        rows_ = data.rows[first:last]
        return [[str(f) for f in rows_.indices[b:e]] for b, e in zip(rows_.indptr, rows_.indptr[1:], strict=False)]

    for algorithm in ("ap", "lbfgs") if full else ("ap",):
        trainer = pycrfsuite.Trainer(algorithm, verbose=False)
        for i, sentence in enumerate(sentences[0]):
            trainer.append(items(task.train, i), [t[2] for t in sentence])
        spent, _ = timed(lambda t=trainer: t.train("/tmp/fginfer-bench.crfsuite"))
        tagger = pycrfsuite.Tagger()
        tagger.open("/tmp/fginfer-bench.crfsuite")
        answers = [tagger.tag(items(task.test, i)) for i in range(task.test.n_examples)]
        print(f"CRFsuite {algorithm}: {names} features, {spent:.1f} s, F1 {100 * chunk_f1(truth, answers):.2f}")


def bench_pinyin(folder: Path, full: bool) -> None:
    task = sets.pinyin(folder)
    print(f"\n== zh_pinyin, {task.train.n_labels} labels at every token, {task.train.token_begin[-1]} tokens")
    pinyin_passes(sets.subset(task.train, np.arange(500)))
    ids, candidates, test_ids, test_truth = task.extra
    judge = Learner(task.test)
    some = 20000 if not full else task.train.n_examples
    train = sets.subset(task.train, np.arange(some)) if not full else task.train

    def accuracy(solver: Any) -> float:
        return 100 * float(np.mean(judge.decode(solver.weights()).labels == test_truth))

    C = pinyin_C(task)
    print(f"training on {some} sequences, C = {C} (held-out), tested on {task.test.n_examples}")
    solver, spent = make_solver("gdmm", Learner(train), None, C, 0, {}), 0.0
    for done in range(1, 5):
        spent += timed(lambda s=solver: s.advance(np.inf))[0]
        info = solver.info
        print(
            f"gdmm, all labels, pass {done}: {spent:6.1f} s, {info.pair_touched / info.pair_calls:.1f} entries a call, "
            f"accuracy {accuracy(solver):.2f} %, memory {peak_memory():.2f} GB"
        )
    del solver
    sets.set_candidates(train, [candidates[s] for s in ids[: train.token_begin[-1]]])
    sets.set_candidates(task.test, [candidates[s] for s in test_ids])
    task.test.truth = task.test.choice[task.test.choice_begin[:-1]]
    judge = Learner(task.test)
    print("with candidate lists per syllable, in training and test:")
    for name in ("gdmm", "bcfw", "perceptron"):
        solver = make_solver(name, Learner(train), None, C, 0, {"cached_passes": 0} if name == "bcfw" else {})
        spent = timed(lambda s=solver: [s.advance(np.inf) for _ in range(4)])[0]
        print(f"{name:<10} 4 passes {spent:6.1f} s, accuracy {accuracy(solver):.2f} %")


def peak_memory() -> float:
    """GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def pinyin_C(task: sets.Task) -> float:
    """The best of a few values after two passes over 10000 sequences, on 2000 others of the training set."""
    rest, held = (sets.subset(task.train, np.arange(*part)) for part in ((10000,), (10000, 12000)))
    judge = Learner(held)

    def right(C: float) -> float:
        solver = make_solver("gdmm", Learner(rest), None, C, 0, {})
        for _ in range(2):
            solver.advance(np.inf)
        return float(np.mean(judge.decode(solver.weights()).labels == held.truth))

    return max((0.05, 0.2, 0.8), key=right)


def pinyin_passes(few: Encoded, C: float = 0.2) -> None:
    """One pass with each oracle on the same sequences, then the time to equal primal objectives."""
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "gdmm, sorted lists": ("gdmm", {}), "gdmm, brute force": ("gdmm", {"brute_force": True}),
        "bcfw, pruned Viterbi": ("bcfw", {"cached_passes": 0}),
        "bcfw, dense Viterbi": ("bcfw", {"cached_passes": 0, "brute_force": True}),
    }  # fmt: skip
    first, weights = {}, {}
    for kind, (name, options) in kinds.items():
        solver = make_solver(name, Learner(few), None, C, 0, options)
        first[kind] = timed(lambda s=solver: s.advance(np.inf))[0]
        weights[kind] = solver.learner.weights.copy()
        note = ""
        if name == "gdmm":
            note = f", {solver.info.pair_touched / solver.info.pair_calls:.1f} entries a pairwise oracle call"
        ratio = first[kind] / first["gdmm, sorted lists"]
        print(f"{kind:<21} pass over {few.n_examples} sequences {first[kind]:7.2f} s, {ratio:4.0f}x{note}")
    same = [np.array_equal(*(weights[k] for k in kinds if k.startswith(name))) for name in ("gdmm", "bcfw")]
    print(f"same weights with both oracles: gdmm {same[0]}, bcfw {same[1]}")
    print("CPU seconds to equal primal objectives (brute force and dense: measured above, times the passes):")
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for name, passes in (("gdmm", 40), ("bcfw", 12)):
        learner = Learner(few)
        solver, spent = make_solver(name, learner, None, C, 0, {"cached_passes": 0} if name == "bcfw" else {}), 0.0
        curves[name] = []
        for done in range(1, passes + 1):
            spent += timed(lambda s=solver: s.advance(np.inf))[0]
            tried = [learner.weights] if name == "gdmm" else [learner.weights, solver.averaged()]
            curves[name].append((done, spent, min(primal(learner, w, C) for w in tried)))
    for done, spent, level in (curves["bcfw"][p - 1] for p in (1, 2, 3, 5, 8, 12)):
        equal = next((c for c in curves["gdmm"] if c[2] <= level), None)
        if equal is None:
            print(f"primal {level:.1f}: gdmm did not get there in {len(curves['gdmm'])} passes")
            continue
        brute, dense = equal[0] * first["gdmm, brute force"], done * first["bcfw, dense Viterbi"]
        print(
            f"primal {level:6.1f}: gdmm {equal[1]:6.2f} s ({equal[0]} passes); brute force {brute / equal[1]:4.0f}x, "
            f"dense Viterbi {dense / equal[1]:4.0f}x ({done} passes), pruned Viterbi {spent / equal[1]:.1f}x"
        )


def primal(learner: Learner, weights: Any, C: float) -> float:
    hinges = learner.hinges(weights, learner.decode(weights, 1.0))
    return 0.5 * float(weights @ weights) + C * float(np.maximum(hinges, 0).sum())


def bench_multilabel(folder: Path) -> None:
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
        seconds[brute] = timed(lambda s=solver: [s.advance(np.inf) for _ in range(3)])[0] / 3
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


def fit_sets(X: Any, Y: Any, Xt: Any, Yt: Any, pairs: bool, C: float, passes: int) -> list[dict[str, Any]]:
    """gdmm on label sets, judged on Xt and Yt after 5, 10, 20 and `passes` passes."""
    data, classes = encode("multilabel", X, Y, pairwise=pairs)
    test, _ = encode("multilabel", Xt, None, classes=classes, pairwise=pairs)
    judge, solver, spent, rows = Learner(test), make_solver("gdmm", Learner(data), None, C, 0, {}), 0.0, []
    for done in range(1, passes + 1):
        spent += timed(lambda: solver.advance(np.inf))[0]
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
    spent, model = timed(lambda: OneVsRestClassifier(LinearSVC(C=C, loss="hinge", max_iter=2000)).fit(X, Y))
    answer = model.predict(Xt)
    print(
        f"          liblinear, one against all  {spent:6.2f} s  micro-F1 {100 * micro_f1(Yt, answer):.2f}  "
        f"exact {100 * exact_match(Yt, answer):.2f}"
    )


def bench_parse(folder: Path) -> None:
    from fginfer.learn import StructuredSVM
    from fginfer.learn.parsing import ArcFeatures, is_projective

    train, test = sets.treebank(folder, "train"), sets.treebank(folder, "test")
    train = [s for s in train if len(s[0]) <= 30 and is_projective(s[2])]
    features = ArcFeatures().fit([s[:2] for s in train])
    X, Xt = (features.transform([s[:2] for s in part]) for part in (train, test))
    print(f"\n== UD English, {len(train)} projective sentences of up to 30 tokens, gold tags")
    for solver in ("bcfw", "perceptron"):
        model = StructuredSVM(model="parse", solver=solver, C=0.1, max_iter=6)
        spent, _ = timed(lambda m=model: m.fit(X, [s[2] for s in train]))
        right = np.concatenate(model.predict(Xt)) == np.concatenate([s[2] for s in test])
        print(f"{solver}: {spent:.1f} s, unlabelled attachment {100 * right.mean():.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="viterbi,ocr,conll,multilabel,parse,pinyin")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if "viterbi" in chosen:
        bench_viterbi()
    if "ocr" in chosen:
        bench_ocr(args.folder, args.out)
    if "conll" in chosen:
        bench_conll(args.folder, args.full, args.out)
    if "multilabel" in chosen:
        bench_multilabel(args.folder)
    if "parse" in chosen:
        bench_parse(args.folder)
    if "pinyin" in chosen:
        bench_pinyin(args.folder, args.full)


if __name__ == "__main__":
    main()
