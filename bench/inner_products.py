"""Maximum inner-product search and the losses that stand on it: indexes, decomposition, classifiers, words.

    python bench/inner_products.py index [--k 100000] [--d 32 128] [--rows clustered] [--peers]
    python bench/inner_products.py loss [--k 20000]
    python bench/inner_products.py multiclass --data FOLDER [--k 20000] [--seconds 60]
    python bench/inner_products.py multilabel --data FOLDER [--seconds 60]
    python bench/inner_products.py words --data FOLDER [--passes 4] [--lines 20000]

FOLDER holds zh_pinyin/ and debian/. Times are CPU seconds of one thread, side by side in one run; a dense scan is BLAS
over a batch and a selection with numpy, which first finds a threshold from the maxima of blocks of scores (see
`dense_scan`). --plot FILE.png draws accuracy and objective against time.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from fginfer.errors import SettingsError
from fginfer.learn import EmbeddingClassifier, SkipGram
from fginfer.learn.losses import EmbeddingLoss
from fginfer.search import BackendIndex, SearchIndex

CURVES: dict[str, list[tuple[str, list[tuple[float, float]]]]] = {}


def cpu(f: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    out = f()
    return time.process_time() - begin, out


# ---- indexes


def clustered(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
    """Fifty rows around each centre."""
    centres = rng.standard_normal((max(10, k // 50), d), dtype=np.float32)
    return centres[rng.integers(0, len(centres), k)] + 0.3 * rng.standard_normal((k, d), dtype=np.float32)


def dense_scan(x: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """BLAS, 64 queries at a time; then numpy: no score below the k-th largest maximum of blocks is among the k best."""
    out = np.empty((len(x), k), np.int64)
    for at in range(0, len(x), 64):
        scores = x[at : at + 64] @ rows.T
        if k == 1:
            out[at : at + 64, 0] = scores.argmax(1)
            continue
        blocks = scores[:, : scores.shape[1] // 64 * 64].reshape(len(scores), -1, 64).max(2)
        floor = np.partition(blocks, -k, axis=1)[:, -k] if blocks.shape[1] >= k else scores.min(1)
        for i, row in enumerate(scores):
            which = np.flatnonzero(row >= floor[i])
            out[at + i] = which[np.argsort(-row[which], kind="stable")[:k]]
    return out


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, truth, strict=True)]))


def bench_index(args: argparse.Namespace) -> None:
    rng, n = np.random.default_rng(0), 256
    for k in args.k:
        for d in args.d:
            for kind in args.rows:
                rows = clustered(rng, k, d) if kind == "clustered" else rng.standard_normal((k, d), dtype=np.float32)
                near = rows[rng.integers(0, k, n)] + 0.3 * rng.standard_normal((n, d), dtype=np.float32)
                far = rng.standard_normal((n, d), dtype=np.float32)
                one_index(args, f"{kind}, K = {k}, D = {d}", rows, {"near": near, "random": far}, rng)


def one_index(
    args: argparse.Namespace, name: str, rows: np.ndarray, queries: dict[str, np.ndarray], rng: np.random.Generator
) -> None:
    built, index = cpu(lambda: SearchIndex(rows))
    labels = rng.integers(0, len(rows), 1000)
    moved = rows[labels] + 0.05 * rng.standard_normal((1000, rows.shape[1]), dtype=np.float32)
    update, _ = cpu(lambda: index.set_rows(labels, moved))
    index.set_rows(labels, rows[labels])
    print(f"\n{name}: {index.clusters} clusters, built in {built:.2f} s, update {1e6 * update / 1000:.1f} us a row")
    for which, x in queries.items():
        for k in (1, 10):
            scan, truth = cpu(lambda x=x, k=k: dense_scan(x, rows, k))
            before = index.counts
            exact, found = cpu(lambda x=x, k=k: index.search(x, k))
            after = index.counts
            touched = (after.rows_touched - before.rows_touched) / len(x) / len(rows)
            print(
                f"  {which:6} top {k:2}: scan {1e3 * scan / len(x):7.3f} ms | exact {1e3 * exact / len(x):7.3f} ms"
                f" ({scan / exact:5.1f}x, {100 * touched:5.1f} % touched, {after.scanned - before.scanned} scans,"
                f" agrees {recall(found.labels, truth):.3f})"
            )
            for wanted in (0.95, 0.99):
                probes = index.tune(x[: len(x) // 2], k, recall=wanted)
                some, found = cpu(lambda x=x, k=k, p=probes: index.search(x[128:], k, probes=p))
                some *= len(x) / len(x[128:])
                print(
                    f"         recall {wanted}: {probes:4} probes {1e3 * some / len(x):7.3f} ms"
                    f" ({scan / some:5.1f}x), measured {recall(found.labels, truth[128:]):.3f}"
                )
    if args.peers and len(rows) <= (10**6 if rows.shape[1] <= 32 else 10**5):
        peers(rows, queries)


def peers(rows: np.ndarray, queries: dict[str, np.ndarray]) -> None:
    for name in ("hnswlib", "faiss"):
        try:
            built, peer = cpu(lambda name=name: BackendIndex(rows, name))
        except SettingsError as error:
            print(f"  {error}")
            continue
        print(f"  {name}: built in {built:.1f} s")
        for which, x in queries.items():
            scan, truth = cpu(lambda x=x: dense_scan(x, rows, 10))
            for probes in (16, 64, 256, 1024):
                spent, found = cpu(lambda x=x, p=probes, peer=peer: peer.backend.query(x, 10, p))
                got = recall(found, truth)
                if got >= 0.95 or probes == 1024:
                    print(
                        f"    {which:6} top 10: {probes} probes {1e3 * spent / len(x):7.3f} ms"
                        f" ({scan / spent:5.1f}x), recall {got:.3f}"
                    )
                    break


# ---- losses on rows and queries of a trained model


def faces(k: int, d: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Identities in families, images around them; the last image of each is for testing."""
    rng = np.random.default_rng(seed)
    family = rng.standard_normal((max(4, k // 20), d), dtype=np.float32)
    points = family[rng.integers(0, len(family), k)] + 0.7 * rng.standard_normal((k, d), dtype=np.float32)
    y = np.repeat(np.arange(k), each)
    X = points[y] + 0.6 * rng.standard_normal((len(y), d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    test = np.arange(len(y)) % each == each - 1
    return X[~test], y[~test], X[test], y[test]


def bench_loss(args: argparse.Namespace) -> None:
    k = args.k[0]
    X, y, X2, y2 = faces(k, 128, 10)
    trained = EmbeddingClassifier(method="search", probes=2, eta0=4.0, max_iter=2, fit_intercept=False).fit(X, y)
    rows, rng = trained.rows_, np.random.default_rng(1)
    which = rng.permutation(len(X))[:300]
    print(f"\nlosses: K = {k}, D = 128, trained to test accuracy {trained.score(X2[:2000], y2[:2000]):.3f}")
    for loss in ("margin", "cross-entropy"):
        truth = EmbeddingLoss(rows, loss, "exact").evaluate(X[which], y[which, None])
        norm = sp.linalg.norm(truth.gradient)
        plans: list[tuple[str, dict[str, Any]]] = [
            (f"search, {p} probes", {"method": "search", "probes": p}) for p in (1, 2, 4, 8, 16, 32, 64)
        ]
        plans += [
            (f"search, {p} probes, rest 0", {"method": "search", "probes": p, "rest": "zero"}) for p in (1, 8, 32)
        ]
        for blocks in (4, 8):
            for probes in (1, 2, 4):
                plans.append(
                    (
                        f"decomposed {blocks}, {probes} probes",
                        {"method": "decomposed", "blocks": blocks, "probes": probes, "keep": 64},
                    )
                )
            plans.append(
                (
                    f"as printed {blocks}, 1 probe",
                    {
                        "method": "decomposed",
                        "blocks": blocks,
                        "probes": 1,
                        "keep": 0,
                        "finish": "blocks",
                        "rest": "zero",
                    },
                )
            )
        for name, options in plans:
            model = EmbeddingLoss(rows, loss, **options)
            spent, got = cpu(lambda m=model: m.evaluate(X[which], y[which, None]))
            value = np.abs(got.values - truth.values).sum() / truth.values.sum()
            gradient = sp.linalg.norm(got.gradient - truth.gradient) / norm
            print(
                f"  {loss:13} {name:24} {1e3 * spent / len(which):6.3f} ms"
                f"  loss off by {value:.4f}, gradient {gradient:.4f}"
            )


# ---- learners


def train(
    title: str, data: tuple[Any, Any, Any, Any], seconds: float, task: str, plans: dict[str, dict[str, Any]]
) -> None:
    X, y, X2, y2 = data
    print(f"\n{title}: {X.shape[0]} training samples, at most {seconds:g} s each")
    for name, options in plans.items():
        curve: list[tuple[float, float]] = []
        model = EmbeddingClassifier(task, time_limit=seconds, max_iter=10, **options)
        spent, _ = cpu(lambda model=model: model.fit(X, y))
        last = model.trace_[-1]
        right = model.score(X2, y2)
        curve.append((last.seconds, right))
        per = 1e3 * last.seconds / max(1, last.oracle_calls)
        print(
            f"  {name:16} accuracy {right:.4f}  objective {model.objective_}  {last.passes} epochs,"
            f" {last.oracle_calls} samples, {spent:.1f} s, {per:.3f} ms a sample"
        )
        CURVES.setdefault(title, []).append((name, curve))


def plans_of(mu: float, blocks: int, eta: float, hidden: int | None = None) -> dict[str, dict[str, Any]]:
    base = {"eta0": eta, "hidden": hidden, "fit_intercept": False}
    return {
        "Softmax": {**base, "loss": "cross-entropy", "method": "exact"},
        "Sampled-Softmax": {**base, "loss": "cross-entropy", "method": "sampled"},
        "Margin": {**base, "loss": "margin", "mu": mu, "method": "exact"},
        "MIPS": {**base, "loss": "margin", "mu": mu, "method": "search", "probes": 2},
        "Decomp-MIPS": {
            **base,
            "loss": "margin",
            "mu": mu,
            "method": "decomposed",
            "probes": 2,
            "blocks": blocks,
            "keep": 64,
        },
    }


def pinyin(folder: Path) -> tuple[Any, Any, Any, Any]:
    """A character from the syllables around it, by a truncated singular value decomposition of their indicators."""
    from sklearn.decomposition import TruncatedSVD

    def tokens(name: str, most: int) -> tuple[list[list[str]], list[str]]:
        windows, characters = [], []
        with gzip.open(folder / "zh_pinyin" / name, "rt", encoding="utf-8") as file:
            for line in file:
                left, right = line.rstrip("\n").split("\t")
                syllables = left.split()
                for i, character in enumerate(right):
                    around = range(max(0, i - 2), min(len(syllables), i + 3))
                    windows.append([f"{j - i}:{syllables[j]}" for j in around])
                    characters.append(character)
                if len(characters) >= most:
                    break
        return windows, characters

    train_windows, y = tokens("train.tsv.gz", 200_000)
    test_windows, y2 = tokens("test.tsv.gz", 5_000)
    number: dict[str, int] = {}
    for window in train_windows:
        for feature in window:
            number.setdefault(feature, len(number))

    def matrix(windows: list[list[str]]) -> sp.csr_matrix:
        pairs = [(i, number[f]) for i, window in enumerate(windows) for f in window if f in number]
        i, j = np.array(pairs).T
        return sp.csr_matrix((np.ones(len(i), np.float32), (i, j)), shape=(len(windows), len(number)))

    svd = TruncatedSVD(128, n_iter=2, random_state=0).fit(matrix(train_windows[:50_000]))
    X, X2 = (svd.transform(matrix(w)).astype(np.float32) for w in (train_windows, test_windows))
    known = np.isin(y2, np.unique(y))
    return X, np.array(y), X2[known], np.array(y2)[known]


def bench_multiclass(args: argparse.Namespace) -> None:
    for k in args.k:
        train(f"faces, K = {k}", faces(k, 128, 20), args.seconds, "multiclass", plans_of(1.0, 8, 4.0))
    if args.data:
        train("zh_pinyin", pinyin(args.data), args.seconds, "multiclass", plans_of(1.0, 8, 1.0))


def svm(path: Path) -> tuple[sp.csr_matrix, list[list[int]]]:
    labels: list[list[int]] = []
    begin, features, values = [0], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            head, *pairs = line.rstrip("\n").split(" ")
            labels.append([int(a) for a in head.split(",") if a])
            for pair in pairs:
                if ":" in pair:
                    feature, value = pair.split(":")
                    features.append(int(feature) - 1)
                    values.append(float(value))
            begin.append(len(features))
    return sp.csr_matrix((np.array(values, np.float32), features, begin), shape=(len(labels), 30768)), labels


def bench_multilabel(args: argparse.Namespace) -> None:
    for name in ("tags", "depends"):
        (X, y), (X2, y2) = (svm(args.data / "debian" / f"{name}-{part}.svm.gz") for part in ("train", "test"))
        train(f"debian {name}", (X, y, X2, y2), args.seconds, "multilabel", plans_of(1.0, 4, 0.1, 100))


def bench_words(args: argparse.Namespace) -> None:
    with gzip.open(args.data / "debian" / "descriptions.txt.gz", "rt") as file:
        text = file.read().splitlines()[: args.lines]
    print(f"\nwords: {len(text)} descriptions")
    for name, method in (("GD", "exact"), ("GD-MIPS", "search"), ("GD-Decomp-MIPS", "decomposed")):
        model = SkipGram(method=method, max_iter=args.passes, eval_every=1)
        spent, _ = cpu(lambda model=model: model.fit(text))
        print(f"  {name:15} {len(model.vocabulary_)} words, {spent:.1f} s; music: {model.most_similar('music', 5)}")
        for point in model.trace_:
            print(f"    pass {point.passes}: objective {point.primal:.4f} after {point.seconds:.1f} s")
        CURVES.setdefault("words", []).append((name, [(p.seconds, p.primal or 0.0) for p in model.trace_]))
    try:
        from gensim.models import Word2Vec
    except ImportError:
        print("  gensim is not installed")
        return
    spent, other = cpu(
        lambda: Word2Vec([t.split() for t in text], vector_size=100, window=8, sg=1, sample=1e-4, epochs=1, workers=1)
    )
    print(f"  gensim, 1 epoch: {spent:.1f} s; music: {[w for w, _ in other.wv.most_similar('music', topn=5)]}")


def plot(path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, max(1, len(CURVES)), figsize=(6 * max(1, len(CURVES)), 4), squeeze=False)
    for axis, (title, curves) in zip(axes[0], CURVES.items(), strict=False):
        for name, points in curves:
            axis.plot(*zip(*points, strict=True), marker="o", label=name)
        axis.set(title=title, xlabel="seconds", ylabel="objective" if title == "words" else "accuracy")
        axis.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["index", "loss", "multiclass", "multilabel", "words"])
    parser.add_argument("--k", type=int, nargs="+", default=[20_000])
    parser.add_argument("--d", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--lines", type=int, default=10**9)
    parser.add_argument("--rows", nargs="+", choices=["clustered", "isotropic"], default=["clustered", "isotropic"])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--plot")
    args = parser.parse_args()
    {
        "index": bench_index, "loss": bench_loss, "multiclass": bench_multiclass, "multilabel": bench_multilabel,
        "words": bench_words,
    }[args.part](args)  # fmt: skip
    if args.plot:
        plot(args.plot)


if __name__ == "__main__":
    main()
