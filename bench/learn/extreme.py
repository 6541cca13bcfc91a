"""Extreme classification beside its peers: quality, CPU seconds, memory, growth with the labels, scale, Dask.

usage: python -m bench extreme FOLDER [--part quality,growth,...] [--data bibtex,tags,...] [--solvers ...]

FOLDER has multilabel/, debian/ and zh_pinyin/ (see extreme_data.py). Prints tables, line by line; every run
of `quality` is a process of its own, so that memory and CPU seconds are its own. Peers (napkinXC, omikuji, liblinear
through scikit-learn) run with their defaults, and only where they are installed. Compare numbers of one run only.

    quality   P@1, P@3, P@5, CPU seconds, memory, k_A, k_W, numbers of weights and dual variables
    growth    cost against the number of labels at fixed rows (labels of depends merged), and a label's positives
    scale     5000 labels of a synthetic set with 670,000
    dask      two workers against one
    mapped    how soon a model of 1 GB predicts (made of random weights, deleted afterwards)
    search    C, lambda, intercept and gap of a data set chosen on held-out rows, then its test rows
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from bench.common.clock import again, peak_mb
from bench.learn.extreme_data import load, synthetic

OURS = {
    "ppd-sparse": {},
    "ppd-sparse fixed": {"intercept": "fixed", "C": 0.3, "lam": 0.02, "tol": 0.05},
    "ppd-sparse hinge": {"loss": "hinge", "C": 1.0},
    "pd-sparse": {"solver": "pd-sparse", "C": 1.0, "lam": 0.05, "tol": 0.05, "max_iter": 15},
}
OWN = {("pinyin", "pd-sparse"): {"max_iter": 3}}  # a million rows: a few passes
PEERS = ("omikuji", "napkinxc plt", "napkinxc ovr", "liblinear")
SLOW = {("napkinxc ovr", "depends"), ("liblinear", "depends"), ("liblinear", "tags"), ("napkinxc ovr", "pinyin"),
        ("liblinear", "pinyin")}  # fmt: skip  # an hour and more
PARTS = ("quality", "growth", "scale", "dask", "mapped", "search")


def precision(answers, y):
    sets = [set(labels) for labels in y]
    hit = np.array(
        [[k in s for k in row[:5]] + [False] * (5 - len(row[:5])) for row, s in zip(answers, sets, strict=True)]
    )
    return [100 * float(hit[:, :k].mean()) for k in (1, 3, 5)]


def cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def write_xmlrepo(path: Path, X, y, labels: int) -> None:
    with open(path, "w") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {labels}\n")
        for i, row in enumerate(y):
            at = slice(X.indptr[i], X.indptr[i + 1])
            pairs = " ".join(f"{j}:{v:.6g}" for j, v in zip(X.indices[at], X.data[at], strict=True))
            file.write(f"{','.join(map(str, row))} {pairs}\n")


def run_ours(given, X, y, X_test):
    from fginfer.extreme import ExtremeClassifier

    begin = cpu()
    model = ExtremeClassifier(**given).fit(X, y)
    trained = cpu()
    answers = model.predict_topk(X_test, 5)[0].tolist()
    last, support = model.trace_[-1], model.trace_[-1].k_A * X.shape[0]
    more = {
        "nnz_W": model.model_.weights.nnz,
        "nnz_A": round(support),
        "k_A": last.k_A,
        "k_W": last.k_W,
        "gap": last.gap,
    }
    return answers, trained - begin, cpu() - trained, more


def run_peer(name, X, y, X_test):
    labels = max(max(row, default=0) for row in y) + 1
    with tempfile.TemporaryDirectory() as folder:
        if name == "omikuji":
            import omikuji

            path = Path(folder) / "train.txt"
            write_xmlrepo(path, X, y, labels)
            begin = cpu()
            model = omikuji.Model.train_on_data(str(path))
            trained = cpu()
            answers = []
            for row in (X_test[i] for i in range(X_test.shape[0])):
                x = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
                answers.append([k for k, _ in model.predict(x, top_k=5)])
        elif name.startswith("napkinxc"):
            from napkinxc.models import BR, PLT

            begin = cpu()
            model = (PLT if name.endswith("plt") else BR)(folder, threads=1)
            model.fit(X, y)
            trained = cpu()
            answers = model.predict(X_test, top_k=5)
        else:
            from sklearn.multiclass import OneVsRestClassifier
            from sklearn.preprocessing import MultiLabelBinarizer
            from sklearn.svm import LinearSVC

            Y = MultiLabelBinarizer(classes=range(labels), sparse_output=True).fit_transform(y)
            begin = cpu()
            model = OneVsRestClassifier(LinearSVC()).fit(X, Y)
            trained = cpu()
            answers = np.argsort(-model.decision_function(X_test), axis=1)[:, :5].tolist()
        return answers, trained - begin, cpu() - trained, {}


def forget_peak() -> None:
    """Linux: the peak of memory counts from here, not from the reading of text."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def one(folder: Path, data: str, name: str, rows: int) -> dict:
    (X, y), (X_test, y_test) = load(folder, data, "train"), load(folder, data, "test")
    X, y = X[:rows], y[:rows]
    forget_peak()
    found = (
        run_ours({**OURS[name], **OWN.get((data, name), {})}, X, y, X_test)
        if name in OURS
        else run_peer(name, X, y, X_test)
    )
    answers, train, test, more = found
    return {"p": precision(answers, y_test), "train": train, "test": test, "mb": peak_mb(), **more}


def quality(folder: Path, data: list[str], solvers: list[str], rows: int) -> None:
    for dataset in data:
        print(f"\n{dataset}: P@1 / P@3 / P@5, CPU seconds to train and to test, peak of memory with the data")
        for name in solvers:
            if (name, dataset) in SLOW:
                print(f"  {name:<18} left out: takes more than an hour")
                continue
            command = again("extreme", folder, "--one", dataset, name, "--rows", rows)
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"  {name:<18} not run: {done.stderr.strip().splitlines()[-1][:90]}")
                continue
            r = json.loads(done.stdout.splitlines()[-1])
            more = ""
            if "nnz_W" in r:
                more = f"  nnz(W) {r['nnz_W']:,} nnz(A) {r['nnz_A']:,}"
                more += f" k_A {r['k_A']:.2f} k_W {r['k_W']:.1f} gap {r['gap']:.1e}"
            p = " / ".join(f"{x:.2f}" for x in r["p"])
            print(f"  {name:<18} {p}  {r['train']:7.1f} s {r['test']:6.1f} s {r['mb']:6.0f} MB{more}", flush=True)


def growth(folder: Path) -> None:
    """Cost against the number of labels at a fixed number of rows: all of debian's dependencies, labels merged."""
    from fginfer.extreme import ExtremeClassifier

    X, y = load(folder, "depends", "train")
    y = [row or [0] for row in y]
    print(f"\ngrowth: {X.shape[0]} rows of depends, labels merged by their remainder; pd-sparse: the mean of 2 passes")
    points = []
    for labels in (500, 1500, 5000, 18587):
        merged = [sorted({k % labels for k in row}) for row in y]
        begin = cpu()
        model = ExtremeClassifier("pd-sparse", tol=0.0, max_iter=2, C=1.0).fit(X, merged)
        touched = model.trace_[-1].entries_touched / 2 / X.shape[0]
        points.append((len(model.classes_), touched, (cpu() - begin) / 2))
        k, t, s = points[-1]
        print(f"  pd-sparse  K {k:>6}: {t:10.0f} weights read a row, {s:6.2f} s a pass", flush=True)
    sizes = np.log([point[0] for point in points])
    slope = [np.polyfit(sizes, np.log([point[i] for point in points]), 1)[0] for i in (1, 2)]
    print(f"  pd-sparse: grows as K^{slope[0]:.2f} in what is read, as K^{slope[1]:.2f} in CPU seconds", flush=True)
    for labels in (500, 1500, 5000, 18587):
        merged = [sorted({k % labels for k in row}) for row in y]
        info, each = sampled_labels(X, merged, min(600, max(30, labels // 30)))
        cost = f"{1e3 * each:7.2f} ms and {info['touched'].mean() / 1e3:7.0f} thousand entries a label"
        per = sum(map(len, merged)) / labels
        print(
            f"  ppd-sparse K {labels:>6}: {per:6.1f} positives a label, {cost}, {each * labels:5.0f} s for all",
            flush=True,
        )
    print("  ppd-sparse, K 18587, by how many rows have the label:")
    edges = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 10**9]
    for low, high in itertools.pairwise(edges):
        some = info[(info["positives"] >= low) & (info["positives"] < high)]
        if len(some):
            cost = f"{some['touched'].mean() / 1e3:9.0f} thousand entries a label"
            print(f"    {low:>5} and more: {len(some):>4} labels, {cost}", flush=True)


def sampled_labels(X, y, many: int):
    """What is known of the training of so many labels, chosen at random, and the CPU seconds of one."""
    from fginfer.core.extreme import PpdTrainer
    from fginfer.extreme import ExtremeClassifier
    from fginfer.extreme.data import labels_of, rows_of, training_data
    from fginfer.extreme.settings import ppd_settings

    data = training_data(rows_of(X), labels_of(y)[0], True)
    chosen = np.sort(np.random.default_rng(0).permutation(data.labels.width)[:many]).astype(np.int32)
    trainer, begin = PpdTrainer(data, 1, **ppd_settings(ExtremeClassifier(), 0)), cpu()
    return trainer.train(chosen).info, (cpu() - begin) / many


def scale(sampled: int = 5000) -> None:
    from fginfer.core.extreme import Lines, PpdTrainer
    from fginfer.extreme import ExtremeClassifier
    from fginfer.extreme.data import training_data
    from fginfer.extreme.settings import ppd_settings

    begin = time.monotonic()
    (b, i, v), (lb, li), (n, d, k) = synthetic()
    made = time.monotonic() - begin
    data = training_data(Lines(b.astype(np.int64), i, v, d), Lines(lb.astype(np.int64), li, None, k), True)
    labels = np.sort(np.random.default_rng(1).permutation(k)[:sampled]).astype(np.int32)
    start = cpu()
    columns = PpdTrainer(data, 1, **ppd_settings(ExtremeClassifier(), 0)).train(labels)
    spent, peak = cpu() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    each = spent / sampled
    print(f"\nscale: {n} rows, {d} features, {k} labels, {len(i) / 1e6:.1f} M values, made in {made:.0f} s")
    info = columns.info
    sizes = f"{info['weights'].mean():.0f} weights and {info['support'].mean():.0f} dual variables each"
    done = f"{100 * info['converged'].mean():.1f} % converged"
    print(f"  {sampled} labels: {1e3 * each:.2f} ms of CPU a label, {sizes}, {done}")
    print(f"  all labels: {each * k / 3600:.2f} h on one core, about {each * k / 100:.0f} s on 100; peak {peak:.2f} GB")


def dask(folder: Path, labels: int = 3000, times: int = 3) -> None:
    """Alternately, so that other work on the machine meets both; beside it two threads, which need no client and no
    scheduler: what this machine has to give."""
    import distributed

    from fginfer.extreme import ExtremeClassifier

    X, y = load(folder, "depends", "train")
    y = [[k for k in row if k < labels] for row in y]
    print(f"\ndask: {labels} labels of depends on workers of one thread, seconds on the clock", flush=True)
    ratios = []
    alone = []
    for jobs in (1, 2):
        begin = time.monotonic()
        ExtremeClassifier(n_jobs=jobs).fit(X, y)
        alone.append(time.monotonic() - begin)
    ratio = alone[0] / alone[1]
    print(f"  1 thread {alone[0]:.1f} s, 2 threads {alone[1]:.1f} s: {ratio:.2f} times as fast", flush=True)
    for _ in range(times):
        seconds = {}
        for workers in (1, 2):
            with distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
                ExtremeClassifier(scheduler=client).fit(X[:200], y[:200] if any(y[:200]) else y)  # imports are made
                begin = time.monotonic()
                ExtremeClassifier(scheduler=client).fit(X, y)
                seconds[workers] = time.monotonic() - begin
        ratios.append(seconds[1] / seconds[2])
        print(
            f"  1 worker {seconds[1]:.1f} s, 2 workers {seconds[2]:.1f} s: {ratios[-1]:.2f} times as fast", flush=True
        )
    print(f"  median {np.median(ratios):.2f}")


def mapped(weights: int = 125_000_000, labels: int = 200_000, features: int = 130_000) -> None:
    from fginfer.core.extreme import Lines
    from fginfer.extreme.model import SparseModel

    rng = np.random.default_rng(0)
    counts = rng.multinomial(weights, np.full(features, 1 / features))
    begin = np.concatenate([[0], np.cumsum(counts)])
    index = rng.integers(0, labels, weights, dtype=np.int32)
    for f in range(features):
        index[begin[f] : begin[f + 1]].sort()
    value = rng.random(weights, dtype=np.float32)
    model = SparseModel(Lines(begin, index, value, labels), np.zeros(labels, np.float32), np.arange(labels), {})
    code = """if True:
        import sys, time
        import numpy as np
        from fginfer.core.extreme import Lines
        from fginfer.extreme.model import SparseModel
        begin = time.monotonic()
        model = SparseModel.load(sys.argv[1])
        row = Lines(np.array([0, 20]), np.arange(20, dtype=np.int32) * 6000, np.ones(20, np.float32), model.n_features)
        model.topk(row, 5)
        print(time.monotonic() - begin)
        anonymous = [line for line in open("/proc/self/status") if line.startswith("RssAnon")]
        print(int(anonymous[0].split()[1]) / 1024)
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        size = path.stat().st_size / 2**30
        del model, index, value
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    print(
        f"\nmapped: {size:.2f} GB; opened and a first row predicted in {1e3 * seconds:.0f} ms, {memory:.0f} MB its own"
    )


def search(folder: Path, data: list[str]) -> None:
    """The choices that ExtremeClassifierCV makes; rows of a file that follow each other and share most of their words
    (debian's packages of one source) are held out together."""
    from fginfer.extreme import ExtremeClassifierCV

    for name in data:
        (X, y), (X_test, y_test) = load(folder, name, "train"), load(folder, name, "test")
        alike = np.asarray(X[1:].multiply(X[:-1]).sum(1)).ravel()
        groups = np.concatenate([[0], np.cumsum(alike < 0.5)])
        print(f"\n{name}: {groups[-1] + 1} groups of {X.shape[0]} rows", flush=True)
        begin = cpu()
        model = ExtremeClassifierCV(intercepts=["shifted", "fixed", "learned"], held_out=0.2, random_state=0)
        model.fit(X, y, groups)
        for r in model.results_:
            p = " / ".join(f"{100 * r[f'p@{k}']:.2f}" for k in (1, 3, 5))
            settings = f"C {r['C']:.2g} lambda {r['lam']:.2g} {r['intercept']:<8} gap {r['tol']:.2g}"
            print(f"  {settings}  held out {p}, {r['weights']:,} weights")
        found = model.evaluate(X_test, y_test)
        chosen = f"C {model.C_:.2g} lambda {model.lam_:.2g} {model.intercept_chosen_} gap {model.tol_:.2g}"
        p = " / ".join(f"{100 * found[f'p@{k}']:.2f}" for k in (1, 3, 5))
        print(f"  chosen: {chosen}; test {p}; {cpu() - begin:.0f} s with the search", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--data", default="bibtex,yeast,rcv1,rcv1+1,tags,depends,pinyin")
    parser.add_argument("--solvers", default=",".join([*OURS, *PEERS]))
    parser.add_argument("--rows", type=int, default=10**9, help="quality: train on the first so many rows only")
    parser.add_argument("--one", nargs=2, metavar=("DATA", "SOLVER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.folder, *args.one, args.rows)))
        return
    data = args.data.split(",")
    for part in args.part.split(","):
        if part not in PARTS:
            parser.error(f"--part: {part} is none of {', '.join(PARTS)}")
        {
            "quality": lambda: quality(args.folder, data, args.solvers.split(","), args.rows),
            "growth": lambda: growth(args.folder), "scale": scale, "dask": lambda: dask(args.folder), "mapped": mapped,
            "search": lambda: search(args.folder, [name for name in data if name != "pinyin"]),
        }[part]()  # fmt: skip


if __name__ == "__main__":
    main()
