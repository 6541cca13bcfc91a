"""Extreme classification beside its peers: quality, CPU seconds, memory, growth with the labels, scale, Dask.

usage: python bench/extreme.py FOLDER [--only quality,growth,scale,dask] [--data bibtex,tags,depends] [--solvers ...]

FOLDER has multilabel/bibtex-{train,test}.svm.gz and debian/{tags,depends}-{train,test}.svm.gz. Prints tables; every run
is a process of its own, so that memory and CPU seconds are its own. Peers (napkinXC, omikuji, liblinear through
scikit-learn) run with their defaults, and only where they are installed. Compare numbers of one run only.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SETS = {"bibtex": "multilabel/bibtex", "tags": "debian/tags", "depends": "debian/depends"}
OURS = {
    "ppd-sparse": {},
    "ppd-sparse fixed": {"intercept": "fixed", "C": 0.3, "lam": 0.02, "tol": 0.05},
    "ppd-sparse hinge": {"loss": "hinge", "C": 1.0},
    "pd-sparse": {"solver": "pd-sparse", "C": 1.0, "lam": 0.05, "tol": 0.05, "max_iter": 15},
}
PEERS = ("omikuji", "napkinxc plt", "napkinxc ovr", "liblinear")
SLOW = {("napkinxc ovr", "depends"), ("liblinear", "depends"), ("liblinear", "tags")}  # an hour and more


def load(folder: Path, name: str, part: str):
    from fginfer.extreme.reader import Reader

    blocks = list(Reader(folder / f"{SETS[name]}-{part}.svm.gz"))
    width = {"bibtex": 1836}.get(name, 30768)
    rows = [b.lines(width, True) for b in blocks]
    X = sp.vstack([sp.csr_matrix((r.value, r.index, r.begin), shape=(r.n, width)) for r in rows]).tocsr()
    return X, [sorted(int(k) for k in labels) for b in blocks for labels in b.labels]


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


def peak_mb() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(folder: Path, data: str, name: str) -> dict:
    (X, y), (X_test, y_test) = load(folder, data, "train"), load(folder, data, "test")
    forget_peak()
    found = run_ours(OURS[name], X, y, X_test) if name in OURS else run_peer(name, X, y, X_test)
    answers, train, test, more = found
    return {"p": precision(answers, y_test), "train": train, "test": test, "mb": peak_mb(), **more}


def quality(folder: Path, data: list[str], solvers: list[str]) -> None:
    for dataset in data:
        print(f"\n{dataset}: P@1 / P@3 / P@5, CPU seconds to train and to test, peak of memory with the data")
        for name in solvers:
            if (name, dataset) in SLOW:
                print(f"  {name:<18} left out: takes more than an hour")
                continue
            command = [sys.executable, __file__, str(folder), "--one", dataset, name]
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
    """Cost against the number of labels at a fixed number of rows: debian's dependencies, labels merged."""
    from fginfer.extreme import ExtremeClassifier

    X, y = load(folder, "depends", "train")
    X, y = X[:15000], [row or [0] for row in y[:15000]]
    print("\ngrowth: 15000 rows of depends, labels merged by their remainder; weights read per row, CPU s a pass")
    points = {"pd-sparse": [], "ppd-sparse": []}
    for labels in (500, 1500, 5000, 18587):
        merged = [sorted({k % labels for k in row}) for row in y]
        for solver in points:
            given = {"max_iter": 5, "C": 1.0} if solver == "pd-sparse" else {"max_iter": 20}
            begin = cpu()
            model = ExtremeClassifier(solver, tol=0.05, **given).fit(X, merged)
            passes = model.n_iter_
            touched = model.trace_[-1].entries_touched / passes / X.shape[0]
            points[solver].append((len(model.classes_), touched, (cpu() - begin) / passes))
            k, t, s = points[solver][-1]
            per = sum(map(len, merged)) / k
            cost = f"{t:10.0f} read a row, {s:6.2f} s, {1e3 * s / k:7.3f} ms a label"
            print(f"  {solver:<11} K {k:>6}: {cost}, {per:6.1f} positives a label", flush=True)
    for solver, found in points.items():
        sizes = np.log([point[0] for point in found])
        slope = [np.polyfit(sizes, np.log([point[i] for point in found]), 1)[0] for i in (1, 2)]
        print(f"  {solver}: grows as K^{slope[0]:.2f} in what is read, as K^{slope[1]:.2f} in CPU seconds")


def synthetic(n=490_000, d=136_000, k=670_000, per_row=75, labels_per_row=5.45, seed=0):
    """Rows and labels with the sizes of Amazon-670K: words and labels by Zipf's law, words that follow the labels."""
    rng = np.random.default_rng(seed)
    counts = 1 + rng.poisson(labels_per_row - 1, n)
    label = np.minimum((k * rng.random(counts.sum()) ** 1.6).astype(np.int64), k - 1)
    row = np.repeat(np.arange(n), counts)
    pairs = np.unique(row * k + label)
    row, label = pairs // k, (pairs % k).astype(np.int32)
    common = (d * rng.random((n, per_row - 15)) ** 3).astype(np.int64)
    own = np.empty((n, 15), np.int64)
    first = np.searchsorted(row, np.arange(n))
    many = np.diff(np.append(first, len(row)))
    for c in range(15):  # every label has 8 words of its own
        chosen = label[first + rng.integers(0, many)].astype(np.int64)
        own[:, c] = (chosen * 2654435761 + rng.integers(0, 8, n) * 40503) % d
    words = np.sort(np.concatenate([common, own], axis=1), axis=1)
    keep = np.ones(words.shape, bool)
    keep[:, 1:] = words[:, 1:] != words[:, :-1]
    begin = np.concatenate([[0], np.cumsum(keep.sum(1))])
    index = words[keep].astype(np.int32)
    idf = np.log(n / (1 + np.bincount(index, minlength=d))).clip(0.1).astype(np.float32)
    value = idf[index]
    norm = np.sqrt(np.add.reduceat(value.astype(float) ** 2, begin[:-1]))
    value = (value / np.repeat(norm, np.diff(begin))).astype(np.float32)
    label_begin = np.concatenate([[0], np.cumsum(many)])
    return (begin, index, value), (label_begin, label), (n, d, k)


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


def dask(folder: Path) -> None:
    import distributed

    from fginfer.extreme import ExtremeClassifier

    X, y = load(folder, "tags", "train")
    seconds = {}
    for workers in (1, 2):
        with distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
            begin = time.monotonic()
            ExtremeClassifier(scheduler=client).fit(X, y)
            seconds[workers] = time.monotonic() - begin
    ratio = seconds[1] / seconds[2]
    print(f"\ndask, tags: 1 worker {seconds[1]:.1f} s, 2 workers {seconds[2]:.1f} s: {ratio:.2f} times as fast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="quality,growth,scale,dask")
    parser.add_argument("--data", default="bibtex,tags,depends")
    parser.add_argument("--solvers", default=",".join([*OURS, *PEERS]))
    parser.add_argument("--one", nargs=2, metavar=("DATA", "SOLVER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.folder, *args.one)))
        return
    wanted = args.only.split(",")
    if "quality" in wanted:
        quality(args.folder, args.data.split(","), args.solvers.split(","))
    if "growth" in wanted:
        growth(args.folder)
    if "scale" in wanted:
        scale()
    if "dask" in wanted:
        dask(args.folder)


if __name__ == "__main__":
    main()
