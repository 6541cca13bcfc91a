"""What limits learning costs and keeps: time limits on label sets, the joint oracle on real ones, weights kept by rows.

usage: python -m bench learning_limits [DATASETS_DIR] [--only limit,joint,rows,memory]

limit  label sets as in delicious (983 labels, 4000 examples, 19 labels each, 500 words), gdmm, time_limit=15: seconds
       in all and of training; a Ctrl-C that comes while it measures
joint  the best pair of labels by scan, by bounds of the labels and in a sorted table: CPU seconds a pass, entries read
       a call, and what a pass costs without pairs, which no joint oracle can save (yeast, bibtex, debian tags)
memory 1000 labels and 500,000 features, as rows and as chains: what training adds to the memory of the process (a dense
       vector of weights has 4 GB), the size of the model file
rows   prediction with weights kept by rows and with dense ones, with and without transitions, alternately
"""

from __future__ import annotations

import argparse
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fginfer.core.learn import Edges, Kind
from fginfer.learn import StructuredSVM
from fginfer.learn.data.encode import encode
from fginfer.learn.data.examples import Encoded
from fginfer.learn.data.readers import read_svmlight
from fginfer.learn.learner import Learner
from fginfer.learn.row_weights import values_of
from fginfer.learn.solvers.registry import make_solver


def delicious(n: int = 4000, labels: int = 983, words: int = 500) -> tuple[Any, list[list[int]]]:
    """Topics choose labels and words; every example has about 19 labels."""
    rng = np.random.default_rng(0)
    of_labels, of_words = rng.dirichlet(np.full(labels, 0.02), 60), rng.dirichlet(np.full(words, 0.05), 60)
    rows, answers = np.zeros((n, words)), []
    for i in range(n):
        mixture = rng.dirichlet(np.full(60, 0.05))
        answers.append(np.unique(rng.choice(labels, 24, p=mixture @ of_labels)).tolist())
        rows[i, np.unique(rng.choice(words, 20, p=mixture @ of_words))] = 1
    return sp.csr_matrix(rows), answers


def bench_limit() -> None:
    X, y = delicious()
    print(f"delicious-like: {X.shape[0]} examples, {sum(map(len, y)) / len(y):.1f} labels each", flush=True)
    for C in (1.0, 10.0):
        svm = StructuredSVM(model="multilabel", C=C, time_limit=15, max_iter=10000)
        begin = time.monotonic()
        svm.fit(X, y)
        took = time.monotonic() - begin
        last = svm.trace_[-1]
        print(
            f"  C = {C:g}, limit 15: {took:.1f} s in all, {last.seconds:.1f} s of training, {last.passes} passes,"
            f" primal {last.primal} from {last.sampled:.1%} of the examples, gap {last.gap}", flush=True,
        )  # fmt: skip
    svm = StructuredSVM(model="multilabel", max_iter=10000, eval_every=1, time_limit=60)
    sent: list[float] = []

    def stop() -> None:
        sent.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(8.0, stop)
    timer.start()
    try:
        svm.fit(X, y)
    except KeyboardInterrupt:
        print(f"  Ctrl-C after 8 s, measuring after every pass: returned {time.monotonic() - sent[0]:.2f} s later")
    timer.cancel()


def real(folder: Path | None) -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    Y = np.zeros((300, 2000), int)
    for row in Y:
        row[10 * rng.integers(200) + rng.choice(10, 4, replace=False)] = 1
    found: dict[str, tuple[Any, Any]] = {"synthetic": ((rng.random((300, 300)) < 0.03).astype(float), Y)}
    if folder is None:
        return found
    for name in ("multilabel/yeast-train", "multilabel/bibtex-train", "debian/tags-train"):
        path = next(
            p for p in (folder / f"{name}.svm.gz", folder / f"{name}.svm", folder / f"{name}.txt.gz") if p.exists()
        )
        X, labels = read_svmlight(path)
        found[name.split("/")[1]] = X[:3000], labels[:3000]
    return found


def bench_joint(folder: Path | None) -> None:
    print(f"{'set':<14}{'labels':>7}{'way':>9}{'s a pass':>10}{'entries':>10}{'against scan':>14}")
    ways: dict[str, tuple[bool, dict[str, Any]]] = {
        "scan": (True, {"brute_force": True}), "bounds": (True, {}), "sorted": (True, {"joint": "sorted"}),
        "no pairs": (False, {}),
    }  # fmt: skip
    for name, (X, y) in real(folder).items():
        spent: dict[str, float] = {}
        for way, (pairwise, options) in ways.items():
            data, _ = encode("multilabel", X, y, pairwise=pairwise)
            solver = make_solver("gdmm", Learner(data), None, 1.0, 0, options)
            solver.advance(np.inf)
            before, start = solver.info, time.process_time()
            for _ in range(3):
                solver.advance(np.inf)
            spent[way] = (time.process_time() - start) / 3
            calls = max(1, solver.info.pair_calls - before.pair_calls)
            entries = (solver.info.pair_touched - before.pair_touched) / calls
            ratio = spent["scan"] / spent[way]
            print(f"{name:<14}{data.n_labels:>7}{way:>9}{spent[way]:>10.3f}{entries:>10.0f}{ratio:>13.1f}x", flush=True)


def bench_rows() -> None:
    print("prediction: CPU seconds with dense weights and by rows, best of 5, alternately")
    rng = np.random.default_rng(0)
    for labels, edges in (
        (200, Edges.NONE),
        (200, Edges.CHAIN),
        (1000, Edges.NONE),
        (1000, Edges.CHAIN),
        (40, Edges.CHAIN),
    ):
        n, length, features, active = 300, 10, 50000, 20
        repeats = 6000 // labels
        tokens = n * length
        columns = (rng.pareto(1.0, (tokens, active)) * 50).astype(int) % features
        begin = np.arange(tokens + 1, dtype=np.int64) * active
        rows = sp.csr_matrix((np.ones(tokens * active), columns.ravel(), begin), shape=(tokens, features))
        rows.sum_duplicates()
        truth = (columns[:, 0] * 7919 % labels).astype(np.int32)
        data = Encoded(Kind.LABELS, edges, np.arange(n + 1, dtype=np.int64) * length, rows, labels, truth)
        solver = make_solver("perceptron", Learner(data, sparse=True), None, 1.0, 0, {})
        for _ in range(2):
            solver.advance(np.inf)
        by_rows = solver.weights()
        dense = np.array(by_rows)
        judges = {"dense": (Learner(data), dense), "rows": (Learner(data, sparse=True), by_rows)}
        best = dict.fromkeys(judges, np.inf)
        answers = {}
        for _ in range(5):
            for way, (judge, weights) in judges.items():
                start = time.process_time()
                for _ in range(repeats):
                    answers[way] = judge.decode(weights).labels
                best[way] = min(best[way], (time.process_time() - start) / repeats)
        same = np.array_equal(answers["dense"], answers["rows"])
        kind = "with" if edges else "no"
        print(
            f"  {labels:>5} labels, {kind} transitions: dense {best['dense']:.4f}, rows {best['rows']:.4f}"
            f" ({best['dense'] / best['rows']:.2f}x), same answers: {same}", flush=True,
        )  # fmt: skip


def bench_memory() -> None:
    labels, features, active = 1000, 500_000, 20
    print(f"{labels} labels x {features} features: MB that training adds, weights that are not zero, MB of the file")
    for model, tokens in (("chain", 6_000), ("multiclass", 60_000)):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, labels, tokens)
        columns = (rng.pareto(0.5, (tokens, active)) * 1000).astype(np.int64) % features
        columns[:, 0] = truth * (features // labels) + rng.integers(0, features // labels, tokens)
        rows = sp.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, active)))
        rows.resize(tokens, features)
        rows.sum_duplicates()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        svm = StructuredSVM(model=model, max_iter=2, fit_intercept=False)
        start = time.process_time()
        svm.fit(rows, truth, **({"offsets": np.arange(0, tokens + 1, 10)} if model == "chain" else {}))
        spent, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with tempfile.TemporaryDirectory() as folder:
            svm.save(Path(folder) / "m.npz")
            size = (Path(folder) / "m.npz").stat().st_size
        print(
            f"  {model:<12}{tokens:>7} tokens: {(peak - before) / 1024:.0f} MB (the process {peak / 1024:.0f}),"
            f" {np.count_nonzero(values_of(svm.weights_))} weights, {size / 2**20:.1f} MB; {spent:.1f} CPU s",
            flush=True,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="limit,joint,rows,memory")
    args = parser.parse_args()
    if "memory" in args.only:  # first: the most a process ever held is all it knows
        bench_memory()
    if "limit" in args.only:
        bench_limit()
    if "joint" in args.only:
        bench_joint(args.folder)
    if "rows" in args.only:
        bench_rows()


if __name__ == "__main__":
    main()
