"""Learning solvers side by side, on the sets of a folder, with peers when they can be imported.

usage: python -m bench learning DATASETS_DIR [--only viterbi,ocr,conll,pinyin,multilabel,parse,papers] [--out DIR]
                                [--full]

Prints tables; with --out also draws primal suboptimality and test error against time and passes. Seconds are CPU
seconds of this process. C is chosen on held-out training data. --full adds the long runs (all of zh_pinyin, L-BFGS).
papers: all parts of learning_papers.py, which can also be chosen by their names (lambda, ocr-large, figure2, ...).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from bench.common.clock import cpu
from bench.learn import learning_data as sets
from bench.learn.learning_multilabel import bench_multilabel
from bench.learn.learning_pinyin import bench_pinyin
from bench.learn.learning_runs import choose_C, draw, last_rows, run, show
from bench.papers.learning_papers import PARTS
from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.metrics import chunk_f1
from fginfer.learn.solvers.registry import make_solver


def bench_viterbi() -> None:
    print("\n== Viterbi, table entries per second and core, whole tables")
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    for k, length, n in ((26, 20, 400), (128, 20, 100), (1000, 20, 5), (4424, 20, 2)):
        rows = sp.csr_matrix(np.ones((n * length, 1)))
        data = Encoded(
            Kind.LABELS, Edges.CHAIN, np.arange(n + 1, dtype=np.int64) * length, rows, k, np.zeros(n * length, np.int32)
        )
        learner = Learner(data)
        learner.weights[:] = rng.normal(size=learner.dimension)
        solver = make_solver("perceptron", learner, None, 1.0, 0, {"brute_force": True})  # one decode an example
        solver.advance(np.inf)
        best = min(cpu(lambda: solver.advance(np.inf))[0] for _ in range(5))  # noqa: B023
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
        ("dcd", 30, {}), ("dcd", 30, {"variant": "cpd"}), ("dcd", 30, {"variant": "light"}), ("perceptron", 30, {}),
        ("mira", 30, {}), ("soft-bcfw", 100, {}), ("gdmm", 200, {"variant": "afw"}),
    ]  # fmt: skip
    for name, passes, options in plans:
        rows += run(name, task.train, C, passes, error, options, "-".join((name, *options.values())))
    plain = run("bcfw", task.train, C, 10, error, {"cached_passes": 0})
    show(last_rows(rows))
    print("10 plain passes of bcfw:")
    show(plain[-1:])
    draw("ocr small", rows, out)


def bench_conll(folder: Path, full: bool, out: Path | None) -> None:
    seconds, task = cpu(lambda: sets.conll(folder))
    C = choose_C(task.train, (0.03, 0.1, 0.3), 5)
    print(f"\n== CoNLL-2000, C = {C} (held-out); reading {seconds:.1f} s, {task.train.rows.shape[1]} features")
    judge, (sentences, truth) = Learner(task.test), task.extra

    def error(w: Any) -> float:
        return 1 - chunk_f1(truth, [task.classes[a] for a in judge.decode(w).split()])

    rows = []
    for name, passes in (("bcfw", 10), ("ssg", 10), ("perceptron", 15), ("dcd", 7), ("mira", 10), ("gdmm", 20)):
        rows += run(name, task.train, C, passes, error)
    print("error = 100 - chunk F1")
    show(last_rows(rows))
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
        spent, _ = cpu(lambda t=trainer: t.train("/tmp/fginfer-bench.crfsuite"))
        tagger = pycrfsuite.Tagger()
        tagger.open("/tmp/fginfer-bench.crfsuite")
        answers = [tagger.tag(items(task.test, i)) for i in range(task.test.n_examples)]
        print(f"CRFsuite {algorithm}: {names} features, {spent:.1f} s, F1 {100 * chunk_f1(truth, answers):.2f}")


def bench_parse(folder: Path, out: Path | None) -> None:
    from fginfer.learn.data.encode import encode
    from fginfer.learn.data.parsing import ArcFeatures, is_projective

    train, test = sets.treebank(folder, "train"), sets.treebank(folder, "test")
    train = [s for s in train if len(s[0]) <= 30 and is_projective(s[2])]
    features = ArcFeatures().fit([s[:2] for s in train])
    data, _ = encode("parse", features.transform([s[:2] for s in train]), [s[2] for s in train])
    judge = Learner(encode("parse", features.transform([s[:2] for s in test]))[0])
    truth = np.concatenate([s[2] for s in test])
    print(
        f"\n== UD English, {len(train)} projective sentences of up to 30 tokens, gold tags; error: heads that are wrong"
    )
    rows = []
    for name in ("bcfw", "ssg", "dcd", "perceptron", "mira"):
        rows += run(name, data, 0.1, 6, lambda w: float(np.mean(judge.decode(w).labels != truth)))
    show(last_rows(rows))
    draw("ud_en_ewt parsing", rows, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="viterbi,ocr,conll,multilabel,parse,pinyin")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    chosen = args.only.split(",")
    unknown = set(chosen) - {"viterbi", "ocr", "conll", "multilabel", "parse", "pinyin", "papers", *PARTS}
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if "viterbi" in chosen:
        bench_viterbi()
    if "ocr" in chosen:
        bench_ocr(args.folder, args.out)
    if "conll" in chosen:
        bench_conll(args.folder, args.full, args.out)
    if "multilabel" in chosen:
        bench_multilabel(args.folder, args.out)
    if "parse" in chosen:
        bench_parse(args.folder, args.out)
    if "pinyin" in chosen:
        bench_pinyin(args.folder, args.out, args.full)
    for name, part in PARTS.items():
        if name in chosen or "papers" in chosen:
            part(args.folder, args.out, 10)


if __name__ == "__main__":
    main()
