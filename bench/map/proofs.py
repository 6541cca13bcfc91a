"""What proofs cost: seconds of logging and of checking, and sizes.

    python -m bench proofs [FOLDER] [--seconds S]

For generated models, or the .uai and .npz files of a folder: CPU seconds of solving without and with a proof, of
checking it, the sizes of proof and model, and the verdict; in the end geometric means by kind of proof. With
--seconds, a time limit for each run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fginfer import FactorGraph, read, solve, write
from fginfer.checker import Check, NotVerified, Stream


class Counted(Check):
    """Counts the nodes of trees."""

    nodes = 0

    def end(self) -> None:
        Counted.nodes += 1
        super().end()


def grid(side: int, labels: int, seed: int, whole: bool) -> FactorGraph:
    rng = np.random.default_rng(seed)

    def scores(*shape: int) -> np.ndarray:
        return rng.integers(-20, 21, shape).astype(float) if whole else rng.normal(size=shape)

    graph = FactorGraph([labels] * side**2)
    for i in range(side**2):
        graph.add_factor([i], scores(labels))
        if (i + 1) % side:
            graph.add_factor([i, i + 1], scores(labels, labels))
        if i + side < side**2:
            graph.add_factor([i, i + side], scores(labels, labels))
    return graph


def chain(n: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(n)
    graph = FactorGraph([labels] * n)
    for i in range(n - 1):
        graph.add_factor([i, i + 1], rng.normal(size=(labels, labels)))
    return graph


def tree(n: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(n)
    graph = FactorGraph([labels] * n)
    for i in range(1, n):
        graph.add_factor([int(rng.integers(i)), i], rng.normal(size=(labels, labels)))
    return graph


def sparse(n: int, labels: int, degree: int, forbidden: float = 0.0) -> FactorGraph:
    rng = np.random.default_rng(n)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        graph.add_factor([i], rng.normal(size=labels))
    for _ in range(n * degree // 2):
        i, j = rng.choice(n, 2, replace=False).tolist()
        table = rng.normal(size=(labels, labels))
        graph.add_factor([i, j], np.where(rng.random(table.shape) < forbidden, -np.inf, table))
    return graph


def potts(side: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(side)
    graph = FactorGraph([labels] * side**2)
    for i in range(side**2):
        graph.add_factor([i], rng.normal(size=labels))
        if (i + 1) % side:
            graph.add_factor([i, i + 1], 0.6 * np.eye(labels))
        if i + side < side**2:
            graph.add_factor([i, i + side], 0.6 * np.eye(labels))
    return graph


def complete(n: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(n)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        for j in range(i):
            graph.add_factor([j, i], rng.normal(size=(labels, labels)))
    return graph


def models(folder: Path | None) -> Iterator[tuple[str, str, str, FactorGraph]]:
    """Kind of proof, name, method, graph."""
    if folder is not None:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".uai", ".npz")):
            yield "files", path.name, "auto", read(path)
        return
    for method in ("bnb", "auto"):
        yield f"trees by {method}", "grid 10x10, 3 labels, whole", method, grid(10, 3, 0, True)
        yield f"trees by {method}", "grid 10x10, 4 labels", method, grid(10, 4, 1, False)
        yield f"trees by {method}", "grid 12x12, 6 labels", method, grid(12, 6, 3, False)
        yield f"trees by {method}", "complete, 16 x 4 labels", method, complete(16, 4)
        yield f"trees by {method}", "Potts 50x50, 5 labels", method, potts(50, 5)
        yield f"trees by {method}", "sparse, 60 x 4 labels, hard", method, sparse(60, 4, 4, 0.2)
    for method in ("trws", "auto"):
        yield f"no trees, {method}", "chain of 2000, 20 labels", method, chain(2000, 20)
        yield f"no trees, {method}", "tree of 5000, 8 labels", method, tree(5000, 8)
    yield "no trees, auto", "sparse, 300 x 2 labels", "auto", sparse(300, 2, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float)
    args = parser.parse_args()
    head = ("solve", "prove", "check", "us a node", "proof", "model")
    print(f"{'model':30} {'method':6} " + " ".join(f"{h:>9}" for h in head) + "  result; verdict")
    ratios: dict[str, list[list[float]]] = {}
    with TemporaryDirectory() as name:
        model, proof = Path(name) / "model.npz", Path(name) / "run.proof"
        for kind, title, method, graph in models(args.folder):
            graph = graph.lowered().graph if graph.rules else graph
            write(graph, model)
            times = [time.process_time()]
            result = solve(graph, method, time_limit=args.seconds, gap=0.0)
            times.append(time.process_time())
            proven = solve(graph, method, time_limit=args.seconds, gap=0.0, proof=proof)
            times.append(time.process_time())
            try:
                Counted.nodes = 0
                with proof.open("rb") as file:
                    said = str(Counted(str(model), Stream(file)).run()).split(" (")[0]
            except NotVerified as error:
                said = str(error)
            times.append(time.process_time())
            solving, proving, checking = np.diff(times)
            nodes = max(1, Counted.nodes)
            sizes = [proof.stat().st_size, model.stat().st_size]
            ratios.setdefault(kind, []).append([proving / solving, checking / solving, sizes[0] / sizes[1]])
            print(f"{title[:30]:30} {method:6} {solving:9.3f} {proving:9.3f} {checking:9.3f} "
                  f"{1e6 * checking / nodes:9.0f} {sizes[0]:9d} {sizes[1]:9d}  "
                  f"{result.status}, {proven.proof}; {said}")  # fmt: skip
    for kind, rows in ratios.items():
        logging, checking, size = np.exp(np.log(np.maximum(rows, 1e-6)).mean(axis=0))
        print(f"{kind}: with proof {logging:.2f} x solving, checking {checking:.1f} x, proof {size:.2f} x the model")


if __name__ == "__main__":
    main()
