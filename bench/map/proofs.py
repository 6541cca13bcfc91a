"""What proofs cost: seconds of logging and of checking, and sizes.

    python -m bench proofs [FOLDER] [--seconds S]

For generated models, or the .uai and .npz files of a folder: CPU seconds of solving without and with a proof, of
checking it, the sizes of proof and model, and the verdict. With --seconds, a time limit for each run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fginfer import FactorGraph, read, solve, write
from fginfer.checker import NotVerified, verify


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


def models(folder: Path | None) -> Iterator[tuple[str, str, FactorGraph]]:
    """Name, method, graph."""
    if folder is not None:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".uai", ".npz")):
            yield path.name, "auto", read(path)
        return
    for method in ("bnb", "auto"):
        yield "grid 10x10, 3 labels, whole", method, grid(10, 3, 0, True)
        yield "grid 10x10, 4 labels", method, grid(10, 4, 1, False)
        yield "grid 14x14, 2 labels", method, grid(14, 2, 2, False)
        yield "grid 12x12, 6 labels", method, grid(12, 6, 3, False)
    for method in ("trws", "auto"):
        yield "chain of 2000, 20 labels", method, chain(2000, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float)
    args = parser.parse_args()
    head = ("solve", "prove", "check", "us a step", "proof", "model")
    print(f"{'model':30} {'method':6} " + " ".join(f"{h:>9}" for h in head) + "  result; verdict")
    with TemporaryDirectory() as name:
        model, proof = Path(name) / "model.npz", Path(name) / "run.proof"
        for title, method, graph in models(args.folder):
            write(graph, model)
            times = [time.process_time()]
            result = solve(graph, method, time_limit=args.seconds, gap=0.0)
            times.append(time.process_time())
            proven = solve(graph, method, time_limit=args.seconds, gap=0.0, proof=proof)
            times.append(time.process_time())
            try:
                verdict = verify(str(model), str(proof))
                said, steps = str(verdict).split(" (")[0], verdict.steps
            except NotVerified as error:
                said, steps = str(error), 1
            times.append(time.process_time())
            solving, proving, checking = np.diff(times)
            sizes = f"{proof.stat().st_size:9d} {model.stat().st_size:9d}"
            print(f"{title[:30]:30} {method:6} {solving:9.3f} {proving:9.3f} {checking:9.3f} "
                  f"{1e6 * checking / steps:9.0f} {sizes}  {result.status}, {proven.proof}; {said}")  # fmt: skip


if __name__ == "__main__":
    main()
