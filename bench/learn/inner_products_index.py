"""Indexes of inner_products.py: time per query beside a dense scan and hnswlib, recall, build and update cost."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from bench.common.clock import cpu, quickest
from bench.learn.inner_products_data import clustered, faces
from fginfer.core.extreme import Lines, Scorer
from fginfer.errors import SettingsError
from fginfer.extreme.model import SparseModel
from fginfer.learn import EmbeddingClassifier
from fginfer.search import BackendIndex, SearchIndex
from fginfer.search_backends import HnswBackend


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


def rows_of(kind: str, k: int, d: int, n: int = 256) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(rows, n queries): near the rows and at random; for trained rows test images."""
    rng = np.random.default_rng(0)
    if kind == "trained":
        data = faces(k, d, 20, some=2 * k)
        model = EmbeddingClassifier(method="search", probes=2, eta0=4.0, max_iter=1, fit_intercept=False)
        model.fit(data.X, data.y)
        print(f"\nrows trained on {len(data.X)} images: accuracy {model.score(data.X_test, data.y_test):.3f}")
        return model.rows_, {"test": data.X_test[:n]}
    rows = clustered(rng, k, d) if kind == "clustered" else rng.standard_normal((k, d), dtype=np.float32)
    near = rows[rng.integers(0, k, n)] + 0.3 * rng.standard_normal((n, d), dtype=np.float32)
    return rows, {"near": near, "random": rng.standard_normal((n, d), dtype=np.float32)}


def bench_index(args: argparse.Namespace) -> None:
    print("index: ms a query (CPU, one thread) and how many times faster than a dense scan by BLAS, 64 queries a time")
    for k in args.k:
        for d in args.d:
            for kind in args.rows:
                rows, queries = rows_of(kind, k, d)
                one_index(f"{kind}, K = {k}, D = {d}", rows, queries, args.clusters)
                if args.peers and k <= (10**6 if d <= 32 else 10**5):
                    peers(rows, queries, *args.graph)


def one_index(name: str, rows: np.ndarray, queries: dict[str, np.ndarray], clusters: int) -> None:
    rng = np.random.default_rng(1)
    built, index = cpu(lambda: SearchIndex(rows, clusters=clusters))
    labels = rng.integers(0, len(rows), 1000)
    moved = rows[labels] + 0.05 * rng.standard_normal((1000, rows.shape[1]), dtype=np.float32)
    update, _ = cpu(lambda: index.set_rows(labels, moved))
    index.set_rows(labels, rows[labels])
    print(f"\n{name}: {index.clusters} clusters, built in {built:.2f} s, update {1e6 * update / 1000:.1f} us a row")
    for which, x in queries.items():
        for k in (1, 10):
            scan, truth = quickest(lambda x=x, k=k: dense_scan(x, rows, k))
            before = index.counts
            exact, found = quickest(lambda x=x, k=k: index.search(x, k))
            after = index.counts
            touched = (after.rows_touched - before.rows_touched) / 3 / len(x) / len(rows)
            line = (
                f"  {which:6} top {k:2}: scan {1e3 * scan / len(x):7.3f} | exact {1e3 * exact / len(x):7.3f}"
                f" ({scan / exact:5.1f}x, {100 * touched:5.1f} % touched, agrees {recall(found.labels, truth):.3f})"
            )
            for wanted in (0.95, 0.99):
                probes = index.tune(x[: len(x) // 2], k, recall=wanted)
                some, found = quickest(lambda x=x, k=k, p=probes: index.search(x[128:], k, probes=p))
                some *= len(x) / len(x[128:])
                line += (
                    f" | {probes:4} probes {1e3 * some / len(x):7.3f}"
                    f" ({scan / some:5.1f}x, recall {recall(found.labels, truth[128:]):.3f})"
                )
            for wanted in (0.95, 0.99):
                many = index.tune(x[: len(x) // 2], k, recall=wanted, by="candidates")
                some, found = quickest(lambda x=x, k=k, c=many: index.search(x[128:], k, candidates=c))
                some *= len(x) / len(x[128:])
                line += (
                    f" | {many:4} candidates {1e3 * some / len(x):7.3f}"
                    f" ({scan / some:5.1f}x, recall {recall(found.labels, truth[128:]):.3f})"
                )
            print(line, flush=True)


def peers(rows: np.ndarray, queries: dict[str, np.ndarray], m: int, ef_construction: int) -> None:
    graph = partial(HnswBackend, M=m, ef_construction=ef_construction)
    for name, backend in (("hnswlib", graph), ("faiss", "faiss")):
        try:
            built, peer = cpu(lambda backend=backend: BackendIndex(rows, backend))
        except SettingsError as error:
            print(f"  {error}")
            continue
        print(f"  {name}: built in {built:.1f} s", flush=True)
        for which, x in queries.items():
            for k in (1, 10):
                scan, truth = quickest(lambda x=x, k=k: dense_scan(x, rows, k))
                for probes in (16, 64, 256, 1024):
                    spent, found = quickest(lambda x=x, k=k, p=probes, peer=peer: peer.backend.query(x, k, p))
                    got = recall(found, truth)
                    print(
                        f"    {which:6} top {k:2}: {probes} probes {1e3 * spent / len(x):7.3f}"
                        f" ({scan / spent:5.1f}x), recall {got:.3f}",
                        flush=True,
                    )
                    if got >= 0.95:
                        break


# ---- every size in one table


def bench_table(args: argparse.Namespace) -> None:
    """A line for rows and queries: times faster than the scan, exactly and at a recall of .95 of the best ten. Above
    10^5 rows there are no clusters (they take minutes to build), only bytes and codes."""
    print(
        "table: times faster than a dense scan by BLAS, one thread; approximate: at the recall behind it, tuned for .95"
    )
    print(
        "rows, queries | scan, ms, top 1, top 10 | exact, top 1, top 10 | clusters, candidates, peers, top 10 | built s"
    )
    for k in args.k:
        for d in args.d:
            for kind in args.rows:
                rows, queries = rows_of(kind, k, d, 128)
                built, index = cpu(lambda rows=rows: SearchIndex(rows, clusters=0 if len(rows) <= 10**5 else 1))
                cpu(lambda index=index, queries=queries: [index.search(x, 1, candidates=1) for x in queries.values()])
                others = table_peers(rows, args) if args.peers else {}
                for which, x in queries.items():
                    print(f"{kind} {k} x {d}, {which} | {table_line(index, rows, x, others)} | {built:.1f}", flush=True)


def table_peers(rows: np.ndarray, args: argparse.Namespace) -> dict[str, BackendIndex]:
    """Those that are built in seconds: of 10^6 rows only with 32 columns or fewer."""
    graph = partial(HnswBackend, M=args.graph[0], ef_construction=args.graph[1])
    given = {"hnswlib": graph, "faiss": "faiss"} if rows.size <= 32 * 10**6 else {}
    out = {}
    for name, backend in given.items():
        try:
            out[name] = BackendIndex(rows, backend)
        except SettingsError as error:
            print(f"  {error}")
    return out


def table_line(index: SearchIndex, rows: np.ndarray, x: np.ndarray, others: dict[str, BackendIndex]) -> str:
    scans = [quickest(lambda k=k: dense_scan(x, rows, k)) for k in (1, 10)]
    exact = [quickest(lambda k=k: index.search(x, k)) for k in (1, 10)]
    for (_, found), (_, truth) in zip(exact, scans, strict=True):
        assert recall(found.labels, truth) > 0.995, "exact search and BLAS differ by more than rounding"
    scan, truth, half = scans[1][0], scans[1][1], len(x) // 2  # tuned on the first half, measured on the other
    found = {}
    for by, name in (("probes", "clusters"), ("candidates", "candidates")):
        if by == "probes" and index.clusters == 1:
            continue
        many = index.tune(x[:half], 10, by=by)
        spent, some = quickest(lambda by=by, many=many: index.search(x[half:], 10, **{by: many}))
        found[name] = (scan / (2 * spent), recall(some.labels, truth[half:]))
    for name, peer in others.items():
        for probes in (16, 32, 64, 128, 256, 512, 1024):
            spent, some = quickest(lambda peer=peer, probes=probes: peer.backend.query(x[half:], 10, probes))
            found[name] = (scan / (2 * spent), recall(some, truth[half:]))
            if found[name][1] >= 0.95:
                break
    near = ", ".join(f"{name} {faster:.1f} at {share:.3f}" for name, (faster, share) in found.items())
    times = [1e3 * spent / len(x) for spent, _ in scans]
    gains = [s / e for (s, _), (e, _) in zip(scans, exact, strict=True)]
    return f"{times[0]:.2f} {times[1]:.2f} | {gains[0]:.1f} {gains[1]:.1f} | {near}"


# ---- the best labels of extreme models with dense weights


def as_lines(table: np.ndarray) -> Lines:
    n, width = table.shape
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    return Lines(np.arange(n + 1, dtype=np.int64) * width, columns, np.ascontiguousarray(table).ravel(), width)


def bench_topk(args: argparse.Namespace) -> None:
    """What ExtremeClassifier.predict_topk asks its model: by the index, feature by feature, and by a dense product."""
    print("topk: ms a row (CPU, one thread), the five best labels of 256 dense rows")
    for k in args.k:
        for d in args.d:
            for kind in args.rows:
                rows, queries = rows_of(kind, k, d)
                model = SparseModel(as_lines(rows.T), np.zeros(k, np.float32), np.arange(k), {})
                plain = Scorer(model.weights, model.bias, model.order)
                for which, x in queries.items():
                    asked = as_lines(x)
                    first, _ = cpu(lambda asked=asked, model=model: model.topk(asked, 5))
                    times = {
                        "index": quickest(lambda asked=asked, model=model: model.topk(asked, 5))[0],
                        "features": quickest(lambda asked=asked, plain=plain: plain.topk(asked, 5))[0],
                        "product": quickest(lambda x=x, rows=rows: dense_scan(x, rows, 5))[0],
                    }
                    line = ", ".join(f"{name} {1e3 * spent / len(x):.3f}" for name, spent in times.items())
                    print(f"  {kind}, K = {k}, D = {d}, {which}: {line}; first call {first:.2f} s in all", flush=True)
