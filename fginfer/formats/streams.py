"""Files seen through their compression (.gz, .xz, .bz2, or none), and files written whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fginfer.errors import FormatError

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def split_compression(path: Path) -> tuple[Path, str]:
    """The path without its compression suffix, and that suffix ("" if there is none)."""
    suffix = path.suffix.lower()
    return (path.with_suffix(""), suffix) if suffix in _OPENERS else (path, "")


@contextmanager
def open_binary(path: Path) -> Iterator[io.BufferedIOBase]:
    """The uncompressed bytes of a file. What the system or the decompressor has to say becomes a FormatError."""
    suffix = split_compression(path)[1]
    try:
        with _OPENERS[suffix](path, "rb") if suffix else open(path, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise FormatError("there is no such file", str(path)) from None
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, OSError, ValueError) as error:
        kind = "cannot be read" if not suffix else f"cannot be decompressed as {suffix}"
        raise FormatError(f"{kind} ({error})", str(path)) from error
