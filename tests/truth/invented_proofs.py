"""Invented proofs of false claims: is there a way of steps, each of which is accepted, that ends in something false?

    python tests/truth/invented_proofs.py [--rounds 2000] [--seed 0]

A round makes a tiny model (one-label variables, forbidden states, scores of all magnitudes, some of them with a
floor), finds its best score by brute force in exact arithmetic, and plays random steps: what is refused is taken back,
what is accepted stays. Thresholds lie just below the truth, so that every tree that ends has been closed by a mistake
of the checker, or by what the floor allows. Ends with 1 if anything false was accepted."""

from __future__ import annotations

import argparse
import copy
import struct
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from fginfer import FactorGraph, write
from fginfer.checker import Check, NotVerified, Stream
from tests.proofs.proof_support import counted, exact_optimum, head

SCALES = (1e-320, 1e-300, 1e-9, 0.1, 1.0, 1.0, 1.0, 3.0, 2.0**40, 1e15, 2.0**60, 1e300)


class Fed(Stream):
    """Steps one after the other; a step that asks for more than it has is refused."""

    def __init__(self) -> None:
        self.left = b""

    def take(self, n: int) -> bytes:
        if n > len(self.left):
            raise NotVerified("the proof ends too early")
        taken, self.left = self.left[:n], self.left[n:]
        return taken


def model(rng: np.random.Generator) -> FactorGraph:
    n = int(rng.integers(1, 5))
    graph = FactorGraph(rng.choice([1, 2, 2, 3, 3], n).tolist())
    scale = float(rng.choice(SCALES))
    kind = int(rng.integers(3))  # whole numbers, reals, or a mixture of magnitudes

    def scores(shape: list[int]) -> np.ndarray:
        made = rng.integers(-6, 7, shape).astype(float) if kind == 0 else rng.normal(size=shape)
        if kind == 2:
            made *= rng.choice(SCALES[1:-1], shape)
        made[rng.random(shape) < rng.choice([0.0, 0.2, 0.5])] = -np.inf
        return made * (scale if kind < 2 else 1.0)

    for _ in range(int(rng.integers(1, 7))):
        scope = rng.choice(n, int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
        graph.add_factor(scope, scores([int(graph.cards[v]) for v in scope]))
    return graph


def packed(numbers: np.ndarray, kind: str) -> bytes:
    return struct.pack("<q", len(numbers)) + bytes([np.dtype(kind).itemsize]) + numbers.astype(kind).tobytes()


def step(check: Check, graph: FactorGraph, rng: np.random.Generator) -> bytes:
    """Any step of the rules that there are now."""
    n, tree = graph.n_variables, check.tree
    if tree is None:
        rule = str(rng.choice(["X", "D", "D", "T", "T"]))
        if rule == "X":
            return b"X" + counted([int(rng.integers(n))])
        if rule == "D":
            return b"D" + struct.pack("<3i", *(int(x) for x in rng.integers(0, 3, 3) % max(n, 3)))
        there = [v for v in range(n) if check.state.has(v)] if rng.random() < 0.9 else [int(rng.integers(n))]
        rng.shuffle(there)
        tables = [rng.choice(len(there), int(rng.integers(2, min(4, len(there)) + 1)), replace=False).tolist()
                  for _ in range(int(rng.integers(0, 5)))] if len(there) > 1 else []  # fmt: skip
        pairs = [(a, b) for a, s in enumerate(tables) for b, t in enumerate(tables) if set(s) > set(t)]
        links = [x for pair in pairs if rng.random() < 0.7 for x in pair]
        flat = np.array([k for t in tables for k in t], "<i4").tobytes()
        return b"T" + counted(there) + counted([len(t) for t in tables]) + flat + counted(links)
    rule = str(rng.choice(["M", "M", "M", "R", "R", "B", "E", "E", "L"]))
    if rule == "M" and tree.n_places:
        k = int(rng.integers(1, tree.n_places + 1))
        places = np.sort(rng.choice(tree.n_places, k, replace=rng.random() < 0.3))
        best = largest_amounts(check, places, rng) if rng.random() < 0.6 else None
        amounts = rng.integers(-100, 101, k) * 10 ** int(rng.integers(0, 15)) if best is None else best
        q = check.state.unit + (0 if best is not None else int(rng.choice([-3, 0, 20, 42, 49])))
        gaps = np.diff(places, prepend=0)
        return b"M" + struct.pack("<h", q) + packed(gaps, "<u8") + packed(amounts, "<i8")
    if rule == "R" and tree.n_labels:
        return b"R" + packed(rng.choice(tree.n_labels, int(rng.integers(1, 4))), "<u8")
    return (
        b"B" + struct.pack("<i", int(rng.integers(tree.n_labels)))
        if rule == "B" and tree.n_labels
        else rule[0].replace("B", "E").encode()
    )


def largest_amounts(check: Check, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Messages that do what good ones do: they bring the maxima of a table to labels."""
    tree = check.tree
    assert tree is not None
    at, _, starts = tree.entries(places)
    best = np.maximum.reduceat(tree.value[at], starts)
    return np.where(best > -np.inf, best * rng.choice([1.0, 0.5]), 0).astype(np.int64)


def play(path: str, graph: FactorGraph, best: Fraction | None, rng: np.random.Generator) -> str:
    stream = Fed()
    floor = None
    if best is not None and rng.random() < 0.4:  # above or below the truth
        floor = float(best) - float(rng.choice([0.0, 1.0, -1.0, 1e-6])) * max(1e-300, abs(float(best)))
    stream.left = head(graph, floor)
    check = Check(path, stream)
    margin = Fraction(float(rng.choice([1e-12, 1e-3, 1.0, -1e-6, -1.0]))) * (abs(best) if best else 1)
    steps = 0
    for _ in range(60):
        before = copy.deepcopy(check)
        planted = check.tree is None
        check.stream.left = step(check, graph, rng)
        try:
            rule = check.stream.take(1)
            check.step(rule)
            steps += 1
            if planted and check.tree is not None and best is not None:
                # A threshold that is too low: the whole model's where the tree is all that is left.
                size = struct.pack(f"<{check.tree.n}i", *[-1] * check.tree.n)
                low = float(best - margin) if floor is None or rng.random() < 0.5 else floor
                check.stream.left = struct.pack("<d", max(-1.7e308, low)) + size
                check.threshold()
        except NotVerified:
            check = before
            continue
        if check.tree is None and check.state.bound() is None and (best is None or floor is not None):
            break
    if check.tree is not None:
        return "open"
    check.stream.left = b"U" + struct.pack("<d", np.inf)
    try:
        verdict = check.conclude()
    except NotVerified:
        return "refused"
    if verdict.kind == "infeasible":
        return "true" if best is None else "FALSE"
    if best is not None and (verdict.bound is None or verdict.bound < best):
        return "FALSE"
    return "tight" if verdict.bound == best else "true"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as name:
        path = str(Path(name) / "model.npz")
        for k in range(args.rounds):
            rng = np.random.default_rng([args.seed, k])
            graph = model(rng)
            try:
                write(graph, path)
                best = exact_optimum(graph)
                said = play(path, graph, best, rng)
            except NotVerified as error:  # the model itself
                said = f"model: {error}"
            if said == "FALSE":
                print(f"FALSE: round {k} of seed {args.seed}")
            counts[said] += 1
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return 1 if counts["FALSE"] else 0


if __name__ == "__main__":
    sys.exit(main())
