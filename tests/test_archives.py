"""Archives from strangers: members that hold more than they announce, overlap, or say one thing and are another."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Result, read, solve, write
from fginfer.archives import load_arrays

pytest.importorskip("sklearn")
from fginfer.learn import EmbeddingClassifier, StructuredSVM
from fginfer.learn.files.describe import is_learned

HIDDEN = 64 << 20  # bytes that a member holds beyond those it announces
X = [np.eye(3)[:2] for _ in range(4)]
Y = [[0, 1]] * 4
KINDS = {"stored": zipfile.ZIP_STORED, "deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2}


def graph() -> FactorGraph:
    return FactorGraph.grid((2, 2), np.arange(8.0).reshape(2, 2, 2), np.array([[0.0, -1.0], [-1.0, 0.0]]))


def trained(path: Path, passes: int = 2) -> StructuredSVM:
    return StructuredSVM(max_iter=passes, tol=1e-9, checkpoint=path).fit(X, Y)


# What is saved, a member of it, and what reads it.
SAVED: dict[str, tuple[Callable[[Path], Any], str, Callable[[Path], Any]]] = {
    "model": (lambda p: write(graph(), p), "values", read),
    "result": (lambda p: solve(graph(), "trws").save(p), "trace", Result.load),
    "learned": (lambda p: StructuredSVM(max_iter=2).fit(X, Y).save(p), "classes", StructuredSVM.load),
    "checkpoint": (trained, "header", lambda p: trained(p, 3)),
    "embedding": (lambda p: EmbeddingClassifier(max_iter=1).fit(np.eye(4), [0, 1, 0, 1]).save(p), "rows",
                  EmbeddingClassifier.load),
}  # fmt: skip


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=True)
    return out.getvalue()


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def lying(path: Path, name: str, kind: int, hidden: int) -> None:
    """The archive anew, with a member that holds that many zeros more than it announces."""
    members = members_of(path)
    with zipfile.ZipFile(path, "w") as archive:
        for other, text in members.items():
            archive.writestr(other, text + bytes(hidden if other == name else 0), kind)
        info = archive.getinfo(name)  # what the directory of the archive will say
        info.file_size, info.CRC = len(members[name]), zlib.crc32(members[name])


@pytest.mark.parametrize("packing", ["deflate", "bzip2"])
@pytest.mark.parametrize("what", SAVED)
def test_no_more_is_unpacked_than_is_announced(what: str, packing: str, tmp_path: Path) -> None:
    save, member, load = SAVED[what]
    path = tmp_path / "bomb.npz"
    save(path)
    lying(path, f"{member}.npy", KINDS[packing], HIDDEN)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    with pytest.raises(FormatError, match=f"{member}.npy holds more than the [0-9]+ bytes it announces"):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HIDDEN / 4


@pytest.mark.parametrize("packing", ["deflate", "bzip2"])
def test_a_look_at_the_header_unpacks_no_more(packing: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    SAVED["learned"][0](path)
    assert is_learned(path)
    lying(path, "header.npy", KINDS[packing], HIDDEN)
    tracemalloc.start()
    assert is_learned(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HIDDEN / 4


@pytest.mark.parametrize("packing", KINDS)
@pytest.mark.parametrize("what", SAVED)
def test_archives_may_be_packed_anew(what: str, packing: str, tmp_path: Path) -> None:
    save, _, load = SAVED[what]
    path = tmp_path / "m.npz"
    save(path)
    zipped(path, members_of(path), KINDS[packing])
    load(path)


@pytest.mark.parametrize("what", SAVED)
def test_other_ways_to_pack_are_refused(what: str, tmp_path: Path) -> None:
    save, _, load = SAVED[what]
    path = tmp_path / "m.npz"
    save(path)
    zipped(path, members_of(path), zipfile.ZIP_LZMA)
    with pytest.raises(FormatError, match="packed in a way that is not read here"):
        load(path)


@pytest.mark.parametrize("packing", KINDS)
def test_truncated_members(packing: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.npz", npy(np.arange(50_000.0) ** 0.5)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", whole, KINDS[packing])
        info = archive.getinfo("a.npy")
        info.compress_size -= 1000
    with pytest.raises(FormatError, match=r"ends \d+ bytes early|announces"):
        load_arrays(path, "a thing")


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """The data of the first are all that follows: a thousand such members would be a thousand times the file."""
    path, inner = tmp_path / "a.npz", npy(np.zeros(1000, np.uint8))
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(inner), len(inner), len(inner), 5, 0)
    second = local + b"b.npy" + inner
    outer = npy(np.frombuffer(second, np.uint8))
    data, directory = b"", b""
    for name, text, at in ((b"a.npy", outer, 0), (b"b.npy", inner, 35 + len(outer) - len(second))):
        sizes = struct.pack("<3L2H", zlib.crc32(text), len(text), len(text), 5, 0)
        if not data:
            data = struct.pack("<4s5H", b"PK\3\4", 20, 0, 0, 0, 33) + sizes + name + text
        directory += struct.pack("<4s6H", b"PK\1\2", 20, 20, 0, 0, 0, 33) + sizes
        directory += struct.pack("<HHHLL", 0, 0, 0, 0, at) + name
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, len(directory), len(data), 0)
    path.write_bytes(data + directory + end)
    with pytest.raises(FormatError, match="its members overlap"):
        load_arrays(path, "a thing")


def test_headers_that_claim_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"

    def header(descr: str, shape: tuple[int, ...]) -> bytes:
        out = io.BytesIO()
        np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
        return out.getvalue()

    for text in (
        header("<f8", (10**15,)) + bytes(8),
        header("<f8", (-1, -1)) + bytes(8),
        header("<f8", (2**62, 4)) + bytes(8),  # a product that wraps around in 64 bits
        header("|S0", (10**12,)),
        header("|V0", (10**12,)),
        header("|O", (1,)) + bytes(8),
        npy(np.array([{"a": 1}], object)),
        b"\x93NUMPY\2\0" + (2**32 - 1).to_bytes(4, "little") + bytes(100),  # a header of four gigabytes
        b"\x93NUMPY\7\0" + bytes(100),
        b"",
    ):
        zipped(path, {"a.npy": text})
        with pytest.raises(FormatError, match="not a thing, or damaged"):
            load_arrays(path, "a thing")


def test_a_long_header_is_not_unpacked(tmp_path: Path) -> None:
    path, length = tmp_path / "a.npz", HIDDEN
    zipped(path, {"a.npy": b"\x93NUMPY\2\0" + length.to_bytes(4, "little") + bytes(length)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    with pytest.raises(FormatError, match="not a thing, or damaged"):
        load_arrays(path, "a thing")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HIDDEN / 4


def test_archives_within_archives_are_no_arrays(tmp_path: Path) -> None:
    path, inner = tmp_path / "a.npz", tmp_path / "inner.npz"
    write(graph(), inner)
    for name in ("fginfer.npy", "result.npy", "header.npy"):
        zipped(path, {name: inner.read_bytes()})
        for load in (read, Result.load, StructuredSVM.load):
            with pytest.raises(FormatError):
                load(path)


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    """Other orders, types and shapes, and names with and without the suffix."""
    path = tmp_path / "a.npz"
    given = {
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(4, dtype=">i4"),
        "none": np.zeros((0, 3)),
        "scalar": np.array(1.5),
        "text": np.array(["a", "bc"]),
        "large": np.arange(300_000),
    }
    for pack in (np.savez, np.savez_compressed):
        pack(path, **given)
        found = load_arrays(path, "a thing")
        assert list(found) == list(given)
        for name, array in given.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert (found[name] == array).all()
            assert found[name].flags.writeable
    zipped(path, {"a": npy([1]), "a.npy": npy([2])})
    with pytest.raises(FormatError, match="two members are called 'a'"):
        load_arrays(path, "a thing")


def test_the_budget_counts_before_it_unpacks(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1 << 20, np.uint8))
    load_arrays(path, "a thing", max_memory=3e6)
    with pytest.raises(FormatError, match=r"would take 0.0021 GB, more than the 0.0015 GB allowed"):
        load_arrays(path, "a thing", max_memory=1.5e6)
