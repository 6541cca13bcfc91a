"""Files seen through their compression (.gz, .xz, .bz2, or none), and files written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from fginfer.budget import Budget
from fginfer.crew import Crew
from fginfer.errors import FormatError, MissingFileError
from fginfer.replacing import replacing, temporary_name

STANDARD = Path("-")  # standard input and output
KEPT = 4 << 20  # bytes of a compressed file that are kept, so that most are unpacked once
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh")  # how such files begin
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def split_compression(path: Path) -> tuple[Path, str]:
    """The path without its compression suffix, and that suffix ("" if there is none)."""
    suffix = path.suffix.lower()
    return (path.with_suffix(""), suffix) if suffix in _OPENERS else (path, "")


def read_whole(stream: Any, budget: Budget) -> bytes:
    """All that is left of a stream, piece by piece: a small compressed file must not unpack to all of the memory."""
    pieces = []
    while piece := stream.read(1 << 20):
        budget.take(len(piece), "the unpacked file")
        pieces.append(piece)
    return b"".join(pieces)


def read_text(stream: Any, path: Path, budget: Budget) -> str:
    """All that is left of a stream as text whose lines end in one sign; bytes that are no UTF-8 can be written again"""
    data = read_whole(stream, budget).removeprefix(codecs.BOM_UTF8)
    _check_text(data, path, 1)
    text = data.decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def whole_lines(stream: Any, path: Path, longest: int, size: int = 1 << 20) -> Iterator[tuple[int, bytes]]:
    """(the number of its first line, text) of pieces of about `size` bytes that end where lines do, with any of the
    three line ends; FormatError for a line of more than `longest` bytes, which could be all of the memory."""
    rest, number = b"", 1
    while data := stream.read(size):
        data = rest + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1  # the last \r may be half of \r\n
        text, rest = data[:cut], data[cut:]
        _check_text(data, path, number)
        number += yield from _counted(text, number)
        if len(rest) > longest:
            raise FormatError(f"a line of more than {longest} bytes", str(path), number)
    yield from _counted(rest, number)


def _check_text(data: bytes, path: Path, number: int) -> None:
    """Words may hold anything but zeros, which no text has: archives, pictures, compressed files under another name."""
    at = data.find(b"\0")
    if at >= 0:
        number += data.count(b"\n", 0, at)
        hint = "; a compressed file must end in .gz, .xz or .bz2" if data.startswith(_PACKED) else ""
        hint = "; this is UTF-16, save the file as UTF-8" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else hint
        raise FormatError(f"a byte is zero: this is no text{hint}", str(path), number)


def _counted(text: bytes, number: int) -> Generator[tuple[int, bytes], None, int]:
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if text:
        yield number, text
    return text.count(b"\n")


class _Unpacked(io.RawIOBase):
    """What comes out of a decompressor, counted."""

    def __init__(self, packed: Any, budget: Budget) -> None:
        self._packed, self._budget = packed, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self._packed.readinto(buffer)
        self._budget.unpack(n)
        return n


def pieces(stream: Any, size: int, ahead: bool) -> Iterator[tuple[bytearray, int]]:
    """The bytes of a stream, so many at a time: room that is used again, and how much of it is filled. With `ahead` a
    thread reads the next piece meanwhile, which takes as long as parsing one where it has to be unpacked."""
    room, next_room = bytearray(size), bytearray(size if ahead else 0)
    if not ahead:
        while n := stream.readinto(room):
            yield room, n
        return
    crew = Crew(1)
    task = crew.submit(partial(stream.readinto, room))
    try:
        while n := task.result():
            task = crew.submit(partial(stream.readinto, next_room))
            yield room, n
            room, next_room = next_room, room
    finally:
        task.wait()
        crew.close()


@contextmanager
def open_binary(path: Path, budget: Budget | None = None) -> Iterator[Any]:
    """The uncompressed bytes of a file, "-" being standard input. What the system or the decompressor has to say
    becomes a FormatError, and so does a compressed file that unpacks to far more than it can be meant to."""
    suffix = split_compression(path)[1]
    if "\0" in str(path):
        raise FormatError("cannot be read (its name holds a zero)", str(path).replace("\0", "\\0"))
    try:
        if path == STANDARD:
            yield sys.stdin.buffer
            return
        if not suffix:
            with open(path, "rb") as stream:
                yield stream
            return
        with _OPENERS[suffix](path, "rb") as packed:
            yield io.BufferedReader(_Unpacked(packed, budget or Budget(path)), 1 << 16)
    except FileNotFoundError:
        raise MissingFileError("there is no such file", str(path)) from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        how = "cannot be read" if not suffix else f"cannot be read as a {suffix} file"
        raise FormatError(f"{how} ({reason})", str(path)) from error


@contextmanager
def open_checked(path: Path, budget: Budget | None = None) -> Iterator[Any]:
    """As open_binary, but a compressed file that unpacks to too much is refused before anything is read from it: a
    reader in Python would take some thirty times as long as unpacking does to get to that place."""
    if split_compression(path)[1] and os.path.isfile(path):
        room = bytearray(1 << 20)
        with open_binary(path, budget.fresh() if budget else None) as stream:
            first = stream.read(KEPT)
            whole = not stream.readinto(room)
            while not whole and stream.readinto(room):
                pass
        if whole:
            yield io.BytesIO(first)
            return
        del first
    with open_binary(path, budget) as stream:
        yield stream


def is_regular(path: Path) -> bool:
    """Whether it can be mapped and read again from its start: no pipe, no standard input, nothing compressed."""
    return not split_compression(path)[1] and path != STANDARD and os.path.isfile(path)


def check_writable(path: str | PathLike[str]) -> None:
    """Raises FormatError if write_atomically could not write here, by trying; what is there stays as it is."""
    if Path(path) == STANDARD:
        return
    target = Path(os.path.realpath(path))
    if os.path.isdir(target):
        raise FormatError("cannot be written (it is a directory)", str(path))
    special = os.path.exists(target) and not os.path.isfile(target)
    if special and os.access(target, os.W_OK):
        return  # opening a pipe could block
    name = target if special else temporary_name(target)
    try:
        os.close(os.open(name, os.O_WRONLY | (0 if special else os.O_CREAT | os.O_EXCL), 0o666))
        if not special:
            os.unlink(name)
    except OSError as error:
        raise FormatError(f"cannot be written ({error.strerror})", str(path)) from error


@contextmanager
def write_atomically(path: Path) -> Iterator[Any]:
    """A binary stream, compressed as the suffix says, that becomes the file only once everything is written.

    "-" is standard output; that, pipes and devices are written as they are.
    """
    try:
        with _target(path) as raw:
            yield from _compressed(raw, split_compression(path)[1])
    except BrokenPipeError:  # the reader has what it wanted
        raise
    except OSError as error:
        raise FormatError(f"cannot be written ({error.strerror})", str(path)) from error


@contextmanager
def _target(path: Path) -> Iterator[Any]:
    if path == STANDARD:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(path) as raw:
            yield raw


def _compressed(raw: Any, suffix: str) -> Iterator[Any]:
    if not suffix:
        yield raw
    elif suffix == ".gz":  # no name and no time inside: the same model gives the same bytes
        with gzip.GzipFile("", "wb", 6, raw, 0) as stream:
            yield stream
    else:
        with _OPENERS[suffix](raw, "wb") as stream:
            yield stream
