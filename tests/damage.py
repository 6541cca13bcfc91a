"""Ways to damage a file: its bytes and words, the arrays and the JSON of an archive, the datasets of an HDF5 file."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from functools import lru_cache
from typing import Any

import h5py
import numpy as np

from fginfer.core.extreme import INFO

TOKENS = [
    b"-1", b"0", b"99999999999999999999", b"1e400", b"nan", b"-inf", b"inf", b"x", b"[", b"]", b"{", b'"', b"\n", b"#",
    b"\xff\x00", b" ", b"-", b":", b",", b"29-1", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\0", b"\xc2\xb2", b"\xe2\x80\xa8",
    b"1_0", b"0x1p3", b"+1", b"-0", b"\t", b"}", b" --> ", b"9" * 4400,
]  # fmt: skip
NUMBERS = [0, 1, 2, 3, 7, 31, 255, 10**6, 2**31 - 1, 2**31, 10**15, 2**63, -1, -2]
NUMBER, WORD = re.compile(rb"\d+"), re.compile(rb"\S+")


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """Bytes, words, numbers, lines, lengths and endings changed, one to three times."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(_CHANGES)(data, rng.randrange(len(data) + 1), rng)
    return data


def _byte(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _bit(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + bytes(b ^ (1 << rng.randrange(8)) for b in data[at : at + 1]) + data[at + 1 :]


def _shortened(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + (b"" if rng.random() < 0.2 else data[at + rng.randint(1, 20) :])


def _token(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _again(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + data[at : at + rng.randint(1, 40)] + data[at:]


def _number(data: bytes, at: int, rng: random.Random) -> bytes:
    """Another number in place of one, often a near one: most of what was meant stays true."""
    found = NUMBER.search(data, at) or NUMBER.search(data)
    if not found:
        return data
    old = int(found[0][:18])
    new = old + rng.choice((-1, 1)) if rng.random() < 0.5 else rng.choice(NUMBERS)
    return data[: found.start()] + str(new).encode() + data[found.end() :]


def _word(data: bytes, at: int, rng: random.Random) -> bytes:
    """A word in place of another."""
    here = WORD.search(data, at)
    there = WORD.search(data, rng.randrange(len(data) + 1))
    return data[: here.start()] + there[0] + data[here.end() :] if here and there else data


def _line(data: bytes, at: int, rng: random.Random) -> bytes:
    """A line left out, twice, or elsewhere."""
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


_CHANGES = (_byte, _bit, _shortened, _token, _again, _number, _number, _number, _word, _line)


def spliced(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """The beginning of one file and the end of another."""
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def damaged_packed(data: bytes, rng: random.Random) -> bytes:
    """A compressed text with damage inside, or outside."""
    if rng.random() < 0.3:
        return damaged_text(data, rng)
    return gzip.compress(damaged_text(gzip.decompress(data), rng), 1, mtime=0)


def damaged_mapped(data: bytes, rng: random.Random) -> bytes:
    """A file of aligned arrays behind a JSON header (models of extreme classification): either of them."""
    length = int.from_bytes(data[8:16], "little")
    if rng.random() < 0.4:
        header = damaged_json(data[16 : 16 + length], rng)
        rest = (
            data[16 + length :]
            if rng.random() < 0.3
            else bytes(-(16 + len(header)) % 64) + data[-(-(16 + length) // 64) * 64 :]
        )
        return _summed(data[:8] + len(header).to_bytes(8, "little") + header + rest, rng)
    at = rng.randrange(16 + length, len(data)) & ~3
    changed = data[:at] + struct.pack("<i", rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 7])) + data[at + 4 :]
    return _summed(changed, rng)


def _summed(data: bytes, rng: random.Random) -> bytes:
    """Mostly with the check sum that a hostile writer would add: else nothing behind it were ever tried."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little") if rng.random() < 0.95 else data


# ---- archives


@lru_cache(maxsize=64)
def _unpacked(archive: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(archive)) as arrays:
        return {name: arrays[name] for name in arrays.files}


@lru_cache(maxsize=64)
def _members(archive: bytes) -> dict[str, bytes]:
    """The files of an archive as they are: damage leaves most of them alone."""
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


last_zipped: tuple[bytes, list[tuple[str, bytes]]] = b"", []  # for tests/truth/fuzz_shortcuts.py


def zipped(members: list[tuple[str, bytes]]) -> bytes:
    """A .zip of stored members, names twice or not. (zipfile takes ten times as long.)"""
    parts, directory, at = [], [], 0
    for name, text in members:
        raw = name.encode()
        sizes = struct.pack("<LLLHH", zlib.crc32(text), len(text), len(text), len(raw), 0)
        parts += [struct.pack("<4s5H", b"PK\3\4", 20, 0, 0, 0, 33) + sizes, raw, text]
        middle = struct.pack("<4s6H", b"PK\1\2", 20, 20, 0, 0, 0, 33) + sizes
        directory += [middle + struct.pack("<HHHLL", 0, 0, 0, 0, at), raw]
        at += 30 + len(raw) + len(text)
    tail = b"".join(directory)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(tail), at, 0)
    global last_zipped
    last_zipped = b"".join(parts) + tail + end, members
    return last_zipped[0]


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


def checksum(members: dict[str, bytes]) -> int:
    lines = (f"{name} {len(text)} {zlib.crc32(text)}\n" for name, text in members.items() if name != "checksum.npy")
    return zlib.crc32("".join(sorted(lines)).encode())


def damaged_arrays(data: bytes, rng: random.Random) -> bytes:
    """An archive one of whose arrays has another size, type or value, is gone, or is there twice."""
    arrays, members = _unpacked(data), dict(_members(data))
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(arrays))
        kind = rng.randrange(20)
        if kind == 0:
            members.pop(name + ".npy", None)
        elif kind == 1:
            members[name + ".npy"] = members[rng.choice(list(members))]
        elif kind == 2:
            members[rng.choice(["", "x", "../x", name, name + ".npy.npy", "é/"])] = members[rng.choice(list(members))]
        elif kind == 3 and name + ".npy" in members:
            members[name + ".npy"] = damaged_text(members[name + ".npy"], rng)
        else:
            members[name + ".npy"] = npy(_damaged_array(name, arrays[name], rng))
        if not members:
            break
    if "checksum.npy" in members and rng.random() < 0.95:  # as a hostile writer would: see _summed
        members["checksum.npy"] = npy(np.array(checksum(members), np.uint32))
    listed = list(members.items())
    if listed and rng.random() < 0.03:
        listed.append(rng.choice(listed))
    return zipped(listed)


OTHER_TYPES = [
    "i1", "i4", "i8", "f2", "f4", "f8", "u1", "u8", "S3", "U3", "c8", "?", "M8[s]", "V5", ">i4", ">f8", [("a", "i4")],
]  # fmt: skip
WORST = [0, 1, -1, 2, 2**31 - 1, -(2**31), 2**62, 255]


def _damaged_array(name: str, array: np.ndarray, rng: random.Random) -> np.ndarray:
    kind = rng.randrange(10)
    if kind == 0:
        return array[:0] if array.ndim else array.reshape(1)[:0]
    if kind == 1:
        return array[:-1] if array.ndim and len(array) else np.zeros(3)
    if kind == 2:
        return np.concatenate([array.reshape(-1)] * 2)
    if kind == 3:
        return np.zeros(array.shape, rng.choice(OTHER_TYPES))
    if kind == 4:
        return rng.choice([array.reshape(1, -1), array.reshape(-1, 1), array.reshape(-1)[:1].reshape(())
                           if array.size else array, np.asfortranarray(array[..., None])])  # fmt: skip
    if name in ("header", "result") and array.dtype == np.uint8:
        text = array.tobytes()
        return np.frombuffer(damaged_json(text, rng) if rng.random() < 0.8 else damaged_text(text, rng), np.uint8)
    if array.size and array.dtype.kind in "iuf":
        changed = array.copy().reshape(-1)
        at, near = rng.randrange(changed.size), rng.choice((-1, 1))
        worst = [*WORST, np.nan, np.inf, -1e300, 1e300, -0.0] if array.dtype.kind == "f" else WORST
        with np.errstate(all="ignore"):
            value = changed[at].item() + near if rng.random() < 0.4 else rng.choice(worst)
            changed[at] = np.array([value % 2**64 if array.dtype.kind == "u" else value]).astype(array.dtype)[0]
        return changed.reshape(array.shape)
    return array.reshape(1, -1)


LEAVES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**70, 0.5, 1e308, -1e-300, "", "x", "1", "nan", "inf", "-inf", [], {}, [1, 2],
    {"a": 1}, [[[[]]]], "x" * 5000, float("nan"), float("inf"),
]  # fmt: skip


def damaged_json(text: bytes, rng: random.Random) -> bytes:
    """The same JSON with one value changed, gone, or there under another name."""
    whole = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(whole)
    if not places:
        return text
    owner, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[rng.choice(["", "x", "kind", "self", "C"])] = owner.pop(key)
    elif kind == 2:
        other, name = rng.choice(places)
        owner[key] = json.loads(json.dumps(other[name])) if name in other or isinstance(other, list) else None
    else:
        owner[key] = rng.choice(LEAVES)
    return json.dumps(whole).encode()


def damaged_journal(data: bytes, rng: random.Random) -> bytes:
    """Records of label columns with damage that their check sums do not show."""
    start = data.index(b"COLUMNS\0")
    records, at = [], start
    while at + 32 <= len(data):
        n, nnz, _ = struct.unpack_from("<3Q", data, at + 8)
        length = n * 4 + (n + 1) * 8 + nnz * 8 + n * 4 + n * INFO.itemsize
        records.append((n, nnz, data[at + 32 : at + 32 + length]))
        at += 32 + length
    k = rng.randrange(len(records))
    n, nnz, body = records[k]
    if rng.random() < 0.2:
        n, nnz = rng.choice([(n, nnz + 1), (n + 1, nnz), (n - 1, nnz), (0, 0), (2**62, nnz), (n, 2**62)])
    elif body:
        at = rng.randrange(len(body)) & ~3
        body = body[:at] + struct.pack("<i", rng.choice([0, 1, -1, 2**31 - 1, -(2**31), 7])) + body[at + 4 :]
    records[k] = n, nnz, body
    if rng.random() < 0.2:
        records.append(records[0])
    packed = [b"COLUMNS\0" + struct.pack("<3Q", n, nnz, zlib.crc32(body)) + body for n, nnz, body in records]
    return data[:start] + b"".join(packed)


# ---- HDF5


def damaged_datasets(data: bytes, rng: random.Random) -> bytes:
    """An HDF5 file one of whose datasets has another size, type or value, is gone, or is a group."""
    out = io.BytesIO(data)
    with h5py.File(out, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = rng.choice(names)
        found = file[name]
        old = found[()] if isinstance(found, h5py.Dataset) else None
        kind = rng.randrange(12)
        if kind == 0 or old is None:
            if kind % 2:
                file.move(name, name + rng.choice(["0", "1", "x"]))
            else:
                del file[name]
        elif kind == 1:
            del file[name]
            file.create_group(name)
        elif kind == 2:
            del file[name]
            file[name] = rng.choice(["text", b"\xff", 0.5, np.array([b"x"]), h5py.Empty("f8")])
        else:
            new = _damaged_array(name, np.asarray(old), rng)
            del file[name]
            try:
                file[name] = new
            except TypeError:  # a type that HDF5 does not have
                file[name] = np.zeros(0)
    return out.getvalue()
