"""Every reader of the package with files to begin with, and ways to damage them: for tests (some) and bench (many)."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fginfer
from fginfer import FactorGraph, FginferError, Potts, Result
from fginfer.formats import read_evidence, read_solution

HERE = Path(__file__).parent
TOKENS = [
    b"-1", b"0", b"99999999999999999999", b"1e400", b"nan", b"-inf", b"inf", b"x", b"[", b"]", b"{", b'"', b"\n", b"#",
    b"\xff\x00", b" ", b"-", b":", b",", b"29-1",
]  # fmt: skip


class Reader(NamedTuple):
    """Seeds, what reads such a file, and what damages more than bytes."""

    seeds: list[bytes]
    suffix: str
    read: Callable[[Path], object]
    damage: Callable[[bytes, random.Random], bytes] | None = None


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """Bytes, tokens, numbers, lengths and endings changed."""
    text = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(text):
            text[at] = rng.randrange(256)
        elif kind == 1:
            del text[at : at + rng.randint(1, 20)]
        elif kind == 2:
            text[at:at] = rng.choice(TOKENS)
        elif kind == 3:
            text[at:at] = text[at : at + rng.randint(1, 40)]
        elif rng.random() < 0.3:
            del text[at:]
        else:  # another number in place of one
            while at < len(text) and not chr(text[at]).isdigit():
                at += 1
            text[at : at + 1] = str(rng.choice([0, 7, 31, 10**6, 10**15])).encode()
    return bytes(text)


@lru_cache(maxsize=64)
def _unpacked(archive: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(archive)) as arrays:
        return {name: arrays[name] for name in arrays.files}


@lru_cache(maxsize=64)
def _members(archive: bytes) -> dict[str, bytes]:
    """The files of an archive as they are: damage leaves most of them alone."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


def damaged_arrays(data: bytes, rng: random.Random) -> bytes:
    """An archive one of whose arrays has another size, type or value, or is gone."""
    arrays, members = _unpacked(data), dict(_members(data))
    name = rng.choice(list(arrays))
    changed = _damaged_array(name, arrays[name], rng)
    if changed is None:
        del members[name + ".npy"]
    else:
        members[name + ".npy"] = _npy(changed)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for member, text in members.items():
            packed.writestr(member, text)
    return out.getvalue()


def _damaged_array(name: str, array: np.ndarray, rng: random.Random) -> np.ndarray | None:
    kind = rng.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        return array[:0] if array.ndim else array.reshape(1)[:0]
    if kind == 2:
        return array[:-1] if array.ndim and len(array) else np.zeros(3)
    if kind == 3:
        return np.concatenate([array.reshape(-1)] * 2)
    if kind == 4:
        other = rng.choice([np.int8, np.int32, np.int64, np.float32, np.float64, np.uint8, "S3", "U3", np.complex64])
        return np.zeros(array.shape, other)
    if kind == 5 and name in ("header", "result"):
        return np.frombuffer(damaged_text(array.tobytes(), rng), np.uint8)
    if array.size and array.dtype.kind in "iuf":
        changed = array.copy().reshape(-1)
        worst = [0, 1, -1, 2**31 - 1, -(2**31), 2**62] + ([np.nan, np.inf, -1e300] if array.dtype.kind == "f" else [])
        with np.errstate(all="ignore"):
            changed[rng.randrange(changed.size)] = np.array([rng.choice(worst)]).astype(array.dtype)[0]
        return changed.reshape(array.shape)
    return array.reshape(1, -1)


def damaged_packed(data: bytes, rng: random.Random) -> bytes:
    """A compressed text with damage inside, or outside."""
    if rng.random() < 0.3:
        return damaged_text(data, rng)
    return gzip.compress(damaged_text(gzip.decompress(data), rng), 1, mtime=0)


def _seeds(*patterns: str) -> list[bytes]:
    found = [p.read_bytes() for pattern in patterns for p in sorted((HERE / "corpus").glob(pattern))]
    return found + [
        p.read_bytes() for pattern in patterns for p in sorted((HERE.parent / "models").glob(pattern))
        if p.stat().st_size < 20_000
    ]  # fmt: skip


def _written(write: Callable[[Path], Any], folder: Path, name: str) -> bytes:
    write(folder / name)
    return (folder / name).read_bytes()


def model_readers(folder: Path) -> dict[str, Reader]:
    """Readers of models, evidence, solutions and results."""
    three = FactorGraph([3, 3, 3])
    mixed = FactorGraph.grid((2, 3), np.ones((2, 3, 4)), Potts(0, -1))
    mixed.add_factor([0, 1, 2], np.arange(64.0).reshape(4, 4, 4), weight=0.5)
    result = fginfer.solve(mixed, "gdmm")
    archive = _written(lambda p: fginfer.write(mixed, p), folder, "m.npz")
    return {
        "uai": Reader(_seeds("*.uai"), ".uai", fginfer.read),
        "uai-packed": Reader(
            [gzip.compress(seed, mtime=0) for seed in _seeds("*.uai")],
            ".uai.gz",
            partial(fginfer.read, threads=3),
            damaged_packed,
        ),
        "lg": Reader(_seeds("*.LG"), ".LG", fginfer.read),
        "wcsp": Reader(_seeds("*.wcsp"), ".wcsp", fginfer.read),
        "cfn": Reader(_seeds("*.cfn"), ".cfn", fginfer.read),
        "npz": Reader([archive], ".npz", fginfer.read),
        "npz-arrays": Reader([archive], ".npz", fginfer.read, damaged_arrays),
        "h5": Reader([_written(lambda p: fginfer.write(mixed, p), folder, "m.h5")], ".h5", fginfer.read),
        "evidence": Reader(_seeds("*.evid"), ".evid", lambda p: read_evidence(p, three)),
        "solution": Reader(_seeds("*.MPE"), ".MPE", lambda p: read_solution(p, three)),
        "result": Reader([_written(result.save, folder, "r.npz")], ".npz", Result.load, damaged_arrays),
    }


def learning_readers(folder: Path) -> dict[str, Reader]:
    """Readers of data, learned models and checkpoints; a model is used, a checkpoint continued."""
    from fginfer.extreme import ExtremeClassifier
    from fginfer.extreme.reader import read_training
    from fginfer.learn import StructuredSVM, read_conll, read_conllu, read_svmlight

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(8)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    out = {
        "conll": Reader(_seeds("*.conll"), ".conll", read_conll),
        "conllu": Reader(_seeds("*.conllu"), ".conllu", read_conllu),
        "svmlight": Reader(_seeds("*.svm"), ".svm", read_svmlight),
        "xmlrepo": Reader(_seeds("*.xml.txt"), ".txt", lambda p: read_training(p, True, False, True)),
    }
    fitted = StructuredSVM(max_iter=3).fit(X, y)
    out["model"] = Reader(
        [_written(fitted.save, folder, "svm.npz")],
        ".npz",
        lambda p: StructuredSVM.load(p).predict(X[:1]),
        damaged_arrays,
    )
    dense = np.abs(rng.normal(size=(20, 5)))
    many = ExtremeClassifier(lam=0.01).fit(dense, dense.argmax(1))
    out["extreme"] = Reader(
        [_written(many.save, folder, "m.fgx")], ".fgx", lambda p: ExtremeClassifier.load(p).predict(dense)
    )
    choices: list[tuple[str, dict[str, Any]]] = [(s, {}) for s in ("bcfw", "cutting-plane", "dcd", "ssg", "gdmm", "fw")]
    for solver, options in [*choices, ("gdmm", {"variant": "afw"})]:
        path = folder / f"{solver}{len(options)}.ckpt"

        def run(path: Path, most: int = 4, solver: str = solver, options: dict[str, Any] = options) -> object:
            settings = {"solver": solver, "solver_options": options or None, "checkpoint": str(path)}
            return StructuredSVM(max_iter=most, tol=1e-9, **settings).fit(X, y)

        run(path, 2)
        out[f"checkpoint-{path.stem}"] = Reader([path.read_bytes()], ".ckpt", run, damaged_arrays)
    return out


def attack(reader: Reader, folder: Path, inputs: int, seed: int) -> int:
    """How many of the damaged files were refused. Any other exception than ours, and any error that is not one line
    beginning with the file's name (settings that do not fit apart), is raised with what led to it."""
    rng = random.Random(seed)
    path = folder / f"attacked{reader.suffix}"
    refused = 0
    for k in range(inputs):
        harm = reader.damage if reader.damage and rng.random() < 0.9 else damaged_text
        path.write_bytes(harm(rng.choice(reader.seeds), rng))
        try:
            reader.read(path)
        except FginferError as error:
            refused += 1
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error}") from error
        except Exception:
            kept = folder / f"failed-{seed}-{k}{reader.suffix}"
            kept.write_bytes(path.read_bytes())
            raise
    return refused
