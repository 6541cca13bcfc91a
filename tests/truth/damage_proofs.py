"""Damaged proofs and proofs of damaged models: is anything false ever verified?

    python tests/truth/damage_proofs.py [--rounds 1000] [--seed 0]

A round makes a small model and its proof, changes one step (a number, a branch, a label, the rule, the order, a step
that is gone or said twice) or one entry of the model, and asks the checker. What is accepted is compared with brute
force in exact arithmetic. Half of the proofs claim no more than the bound that they show, so that a claim that does
not fit any more cannot hide a step that should have been refused. Ends with 1 if anything false was accepted."""

from __future__ import annotations

import argparse
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ledger import note

from fginfer import FactorGraph, proving, solve, write
from fginfer.checker import MAGIC, NotVerified, Verdict, verify
from tests.exact.models import proof_graph
from tests.proofs.proof_support import exact_optimum, steps_of

USUAL = {name: getattr(proving, name) for name in ("LITTLE_WORK", "LITTLE_TREE", "ELIMINATION_WORK")}
Field = np.ndarray  # the numbers of one field of a step
Step = tuple[bytes, list[Field]]


class Steps:
    """A proof taken apart, and put together again."""

    def __init__(self, data: bytes, n_variables: int) -> None:
        self.data, self.at, self.n = data, 0, n_variables
        self.head = data[: 8 + struct.unpack("<q", data[:8])[0]]
        self.at = len(self.head)
        self.steps: list[Step] = []
        while self.at < len(data):
            rule = self.take(1)
            self.steps.append((rule, self.fields(rule)))

    def take(self, n: int) -> bytes:
        self.at += n
        return self.data[self.at - n : self.at]

    def numbers(self, kind: str, n: int) -> Field:
        return np.frombuffer(self.take(n * np.dtype(kind).itemsize), kind).copy()

    def counted(self) -> Field:
        return self.numbers("<i4", int(self.numbers("<i8", 1)[0]))

    def packed(self, sign: str) -> Field:
        n = int(self.numbers("<i8", 1)[0])
        return self.numbers(f"<{sign}{self.take(1)[0]}", n)

    def fields(self, rule: bytes) -> list[Field]:
        if rule == b"T":
            variables, arity = self.counted(), self.counted()
            self.tree = len(variables)
            return [variables, arity, self.numbers("<i4", int(arity.sum())), self.counted()]
        if rule == b"K":
            return [self.numbers("<f8", 1), self.numbers("<i4", self.tree)]
        if rule == b"M":
            return [self.numbers("<i2", 1), self.packed("u"), self.packed("i")]
        if rule == b"Q":
            return [self.numbers("u1", 1), self.numbers("<f8", 1)]
        known = {b"S": lambda: self.numbers("<i4", self.n), b"X": self.counted, b"R": lambda: self.packed("u"),
                 b"B": lambda: self.numbers("<i4", 1), b"D": lambda: self.numbers("<i4", 3)}  # fmt: skip
        return [known[rule]()] if rule in known else []

    @staticmethod
    def written(step: Step) -> bytes:
        rule, fields = step
        counted = {b"X": "c", b"T": "ccnc", b"M": "npp", b"R": "p"}.get(rule, "n" * len(fields))
        out = rule
        for how, field in zip(counted, fields, strict=True):
            out += b"" if how == "n" else struct.pack("<q", len(field))
            out += bytes([field.dtype.itemsize]) if how == "p" else b""
            out += field.tobytes()
        return out

    def whole(self) -> bytes:
        return self.head + b"".join(map(self.written, self.steps))


def damage(proof: Steps, rng: np.random.Generator) -> str:
    """Changes one step; what was done."""
    how = str(rng.choice(["number", "number", "number", "gone", "twice", "order", "rule", "cut field"]))
    k = int(rng.integers(len(proof.steps)))
    rule, fields = proof.steps[k]
    full = [f for f in fields if len(f)]
    if how == "number" and full:
        field = full[int(rng.integers(len(full)))]
        at = int(rng.integers(len(field)))
        with np.errstate(over="ignore"):
            if field.dtype.kind == "f":
                field[at] = rng.choice([0.0, -1.0, 1e300, np.nan, np.inf, field[at] * 2, field[at] + 1])
            else:
                field[at] += np.array(rng.choice([-1, 1, 2, 7, -100, 100, 30000])).astype(field.dtype)
        return f"number in {rule!r}"
    if how == "gone":
        del proof.steps[k]
    elif how == "twice":
        proof.steps.insert(k, proof.steps[k])
    elif how == "order":
        other = int(rng.integers(len(proof.steps)))
        proof.steps[k], proof.steps[other] = proof.steps[other], proof.steps[k]
    elif how == "rule":
        proof.steps[k] = (
            bytes(rng.choice([b"S", b"X", b"T", b"K", b"M", b"R", b"B", b"E", b"D", b"L", b"Q"]).tolist()),
            fields,
        )
        if proof.steps[k][0] in (b"X", b"T", b"M", b"R", rule):
            proof.steps[k] = (b"E", [])
    elif full:
        f = int(rng.integers(len(fields)))
        fields[f] = fields[f][: int(rng.integers(len(fields[f]) + 1))]
    return f"{how} {rule!r}"


def model(seed: int) -> FactorGraph:
    """Small models, most of them too frustrated for a proof without branches."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 0:
        return proof_graph(seed)
    n, labels = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    graph = FactorGraph([labels] * n)

    def scores(*shape: int) -> np.ndarray:
        made = rng.integers(-9, 10, shape).astype(float) if seed % 4 == 1 else rng.normal(size=shape)
        made[rng.random(shape) < (0.35 if seed % 4 == 3 else 0.0)] = -np.inf
        return made

    for i in range(n):
        graph.add_factor([i], rng.normal(size=labels).round(0 if seed % 4 == 1 else 3))
        for j in range(i):
            graph.add_factor([j, i], scores(labels, labels))
    return graph


def changed(graph: FactorGraph, rng: np.random.Generator) -> FactorGraph:
    """A copy with one more factor: an entry of the model is another one."""
    other = graph.copy()
    size = min(2, graph.n_variables)
    scope = [int(v) for v in rng.choice(graph.n_variables, size, replace=False)]
    table = np.zeros([int(graph.cards[v]) for v in scope])
    table[tuple(int(rng.integers(k)) for k in table.shape)] = rng.choice([1.0, -1.0, 50.0, -50.0, 1e-3, -np.inf])
    other.add_factor(scope, table)
    return other


def is_false(best: object, verdict: Verdict) -> bool:
    if verdict.kind == "infeasible":
        return best is not None
    if best is None:
        return verdict.score is not None
    if verdict.bound is None or verdict.bound < best or (verdict.score is not None and verdict.score > best):
        return True
    return verdict.kind == "optimal" and (verdict.score is None or best - verdict.score > verdict.budget)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as name:
        file, out = str(Path(name) / "model.npz"), Path(name) / "run.proof"
        for k in range(args.rounds):
            seed, rng = args.seed + k // 20, np.random.default_rng([args.seed, k])
            if k % 20 == 0:
                graph = model(seed)
                method = str(rng.choice(["auto", "auto", "bnb"]))
                # Half of the proofs are of the kind that makes a model smaller first.
                for name_of, usual in USUAL.items():
                    setattr(proving, name_of, usual if rng.random() < 0.5 else -1.0)
                solve(graph, method, gap=0.0, proof=out)
                data, best = steps_of(out), exact_optimum(graph)
                write(graph, file)
            proof, truth, checked = Steps(data, graph.n_variables), best, file
            assert proof.whole() == data
            if rng.random() < 0.3:
                other = changed(graph, rng)
                truth, checked, how = exact_optimum(other), str(Path(name) / "other.npz"), "model"
                write(other, checked)
                proof.head = proof.head.replace(  # as of a proof that says nothing about the sizes
                    b'"factors": %d' % len(graph.factors()), b'"factors": %d' % len(other.factors())
                )
                proof.head = struct.pack("<q", len(proof.head) - 8) + proof.head[8:]
            else:
                how = damage(proof, rng)
            if proof.steps and proof.steps[-1][0] == b"Q" and len(proof.steps[-1][1]) == 2 and rng.random() < 0.5:
                proof.steps[-1] = (b"Q", [np.array([ord("U")], "u1"), np.array([np.inf])])
            out.write_bytes(MAGIC + zlib.compress(proof.whole(), 1))
            try:
                verdict = verify(checked, str(out))
            except NotVerified as error:
                said = str(error)
                assert said.startswith("not verified: step ")
                assert "\n" not in said
                counts["refused"] += 1
                continue
            if is_false(truth, verdict):
                print(f"FALSE: model {seed}, round {k}, {how}: {verdict}, the best score is {truth}")
                counts["false"] += 1
            else:
                counts["still true"] += 1
    note("damage_proofs.py", "proofs", counts.total(), counts["false"])
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return 1 if counts["false"] else 0


if __name__ == "__main__":
    sys.exit(main())
