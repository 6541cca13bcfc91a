"""Trimming: a proof without the steps that its conclusion does not need, written while it is checked."""

from __future__ import annotations

import zlib
from typing import Any

from fginfer.checker import MAGIC, Check, NotVerified, Stream, Verdict, verify


class _Kept(Stream):
    """Collects the bytes of the step under way."""

    def __init__(self, file: Any) -> None:
        self.kept = bytearray()
        super().__init__(file)

    def take(self, n: int) -> bytes:
        taken = super().take(n)
        self.kept += taken
        return taken


class _Trimmer(Check):
    """In a branch that is closed when it begins, no step is needed but thresholds, and its end."""

    def __init__(self, model: str, stream: _Kept, write: Any) -> None:
        self.kept, self.write, self.depth = stream.kept, write, 0
        super().__init__(model, stream)
        self.keep()

    def keep(self) -> None:
        self.write(bytes(self.kept))
        self.kept.clear()

    def step(self, rule: bytes) -> None:
        """Reads and checks a step, and keeps it if it is needed."""
        tree = self.tree
        if self.depth and rule != b"K":
            self.skip(rule)
            return
        super().step(rule)
        self.keep()
        if rule == b"B" and tree is not None and tree.closed():
            self.depth = 1

    def skip(self, rule: bytes) -> None:
        assert self.tree is not None
        if rule == b"E" and self.depth == 1:
            self.depth = 0
            super().step(rule)
            self.keep()
            return
        self.depth += {b"B": 1, b"E": -1}.get(rule, 0)
        if rule == b"B":
            self.stream.take(4)
        elif rule == b"M":
            self.read_messages()
        elif rule == b"R":
            self.stream.packed_ints(self.tree.n_labels, "u")
        elif rule != b"E":
            raise NotVerified(f"there is no rule {rule!r} here")
        self.kept.clear()

    def conclude(self) -> Verdict:
        verdict = super().conclude()
        self.keep()
        return verdict


def trim(model: str, proof: str, out: str) -> Verdict:
    """Checks a proof and writes what is needed of it. Raises NotVerified, as `verify` does."""
    packer, parts = zlib.compressobj(6), [MAGIC]
    verdict = verify(model, proof)  # a proof that is none leaves no file
    with open(proof, "rb") as file:
        _Trimmer(model, _Kept(file), lambda step: parts.append(packer.compress(step))).run()
    with open(out, "wb") as file:
        file.writelines([*parts, packer.flush()])
    return verdict
