"""Sorted oracles against messages that block what their lists begin with: how much longer than a scan they ever take.

    python -m bench adversarial [--labels 64 256 1024] [--seed 0] [--source additive]

For every source and every kind of message: CPU time of a query by a scan, by the search alone (path="search") and by
path="auto", which gives up where a scan would be done sooner; entries touched as a share of what the scan touches. The
messages: `few` on a dozen labels (as gdmm has them), `block` on the best half of the labels and beyond all scores,
`level` on the best half and bringing them down to the others, `lift` negative on half the labels, `flatten` half the
range of every label, `root` on the best 4 sqrt(K). Lists are made before times are taken. The last line is the largest
ratio of auto to scan; the aim is 1.3.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bench.common.clock import quickest
from fginfer import AbsDiff, FactorGraph
from fginfer.oracles import GraphOracle, Messages, Ranking, Source, UpdatableTable

Array = NDArray[np.float64]
Ask = Callable[[Messages, int, str], object]
ENTRIES = 2e6  # read by the scans of a batch: the calls from Python vanish beside them


def blocking(best: list[Array], rng: np.random.Generator) -> Iterator[tuple[str, list[dict[int, float]]]]:
    """Messages by kind; best: what every label of a variable has at best."""

    def each(make: Callable[[Array], dict[int, float]]) -> list[dict[int, float]]:
        return [make(m) for m in best]

    def top(m: Array, n: int) -> list[int]:
        return [int(a) for a in np.argsort(-m, kind="stable")[:n]]

    def some(m: Array, n: int) -> list[int]:
        return [int(a) for a in rng.choice(len(m), min(n, len(m)), replace=False)]

    yield "few", each(lambda m: {a: float(rng.normal(0.3, 0.3)) for a in some(m, 12)})
    yield "block", each(lambda m: dict.fromkeys(top(m, len(m) // 2), 100.0))
    yield "level", each(lambda m: {a: float(m[a] - m.min() + 0.01 * rng.normal()) for a in top(m, len(m) // 2)})
    yield "lift", each(lambda m: {a: -float(rng.random()) for a in some(m, len(m) // 2)})
    yield "flatten", each(lambda m: {a: float(m[a] / 2) for a in range(len(m))})
    yield "root", each(lambda m: dict.fromkeys(top(m, int(4 * len(m) ** 0.5)), 100.0))


def batch(messages: list[dict[int, float]], times: int) -> Messages:
    """The same messages for every question of a batch."""
    labels = [np.array(sorted(m), np.int32) for m in messages]
    values = [np.array([m[a] for a in sorted(m)]) for m in messages]
    sizes = np.tile([len(m) for m in messages], times)
    begin = np.concatenate([[0], np.cumsum(sizes)])
    return Messages(begin, np.tile(np.concatenate(labels), times), np.tile(np.concatenate(values), times))


def pair_tables(k: int, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Tables whose rows and columns have much, little and some of a common order, and one of ties."""
    yield "additive", np.add.outer(rng.normal(size=k), rng.normal(size=k))
    yield "noise", rng.normal(size=(k, k))
    at = rng.random((k, 2))
    yield "smooth", -np.minimum(np.abs(np.linalg.norm(at[:, None] - at[None], axis=2) - 0.2), 0.3)
    yield "ties", np.add.outer(rng.integers(0, 4, k), rng.integers(0, 4, k)).astype(float)


def of_graph(shape: tuple[int, ...], table: object) -> tuple[Source, Ask]:
    graph = FactorGraph(list(shape))
    graph.add_factor(list(range(len(shape))), table)
    oracle = GraphOracle(graph)
    return oracle, lambda m, times, path: oracle.ask(np.zeros(times, int), m, path=path)


def sources(k: int, rng: np.random.Generator) -> Iterator[tuple[str, list[Array], float, Source, Ask]]:
    """Name, what the labels of each variable have at best, how many numbers a scan reads, the source, a question."""
    for name, table in pair_tables(k, rng):
        source, ask = of_graph((k, k), table)
        yield name, [table.max(1), table.max(0)], table.size, source, ask
    side = max(4, round(k ** (2 / 3)))
    cube = sum(np.meshgrid(*(rng.normal(size=side) for _ in range(3)), indexing="ij"))
    source, ask = of_graph((side,) * 3, cube)
    yield "three variables", [cube.max((1, 2)), cube.max((0, 2)), cube.max((0, 1))], cube.size, source, ask
    source, ask = of_graph((k, k), AbsDiff(0.01, 1.0))
    yield "differences", [rng.random(k), rng.random(k)], 2 * k, source, ask
    sparse = np.where(rng.random((k, k)) < 0.05, np.add.outer(rng.random(k), rng.random(k)), 0.0)
    changing = UpdatableTable((k, k), sparse, path="search")
    best, entries = [sparse.max(1), sparse.max(0)], np.count_nonzero(sparse) + 2 * k
    yield "updatable", best, entries, changing, lambda m, n, path: changing.ask(n, m, path=path)
    values = rng.normal(size=k * k)
    ranking = Ranking(values)
    yield "ranking", [values], values.size, ranking, lambda m, n, path: ranking.ask(n, m, path=path)


def measure(source: Source, ask: Ask, messages: Messages, times: int, path: str) -> tuple[float, float]:
    """CPU seconds and touched entries of one query."""
    ask(messages, times, path)
    before = source.touched
    ask(messages, times, path)
    touched = (source.touched - before) / times
    return quickest(lambda: ask(messages, times, path), 5)[0] / times, touched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", default="", help="the beginning of a name")
    options = parser.parse_args()
    worst, at = 0.0, ""
    heads = ("scan, us", "search/scan", "auto/scan", "touched")
    print(f"{'labels':>6} {'source':16}{'messages':9}" + "".join(f"{h:>12}" for h in heads))
    for k in options.labels:
        rng = np.random.default_rng(options.seed)
        for name, best, entries, source, ask in sources(k, rng):
            if not name.startswith(options.source):
                continue
            times = max(3, int(ENTRIES / entries))
            for kind, given in blocking(best, rng):
                messages = batch(given, times)
                scan, whole = measure(source, ask, messages, times, "scan")
                search, _ = measure(source, ask, messages, times, "search")
                auto, touched = measure(source, ask, messages, times, "auto")
                if auto / scan > worst:
                    worst, at = auto / scan, f"{name}, {kind}, {k} labels"
                print(
                    f"{k:6} {name:16}{kind:9}{1e6 * scan:12.1f}{search / scan:12.2f}{auto / scan:12.2f}"
                    f"{touched / whole:12.3f}",
                    flush=True,
                )
    print(f"at most {worst:.2f} times a scan: {at}")


if __name__ == "__main__":
    main()
