"""Files that appear whole or not at all: written beside their place, then renamed. What killed runs left is cleared."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_SUFFIX = ".part"
LONGEST_NAME = 255  # bytes of the name of a file, on all systems that we know
_LONG = LONGEST_NAME - 80  # the rest is for host, process and suffix
_FOREIGN = 86_400.0  # seconds after which a file of another machine, whose processes nobody can ask, counts as left


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())[:20] or "host"


def temporary_name(target: Path) -> Path:
    """A new name beside the target that says who writes it."""
    return target.with_name(f".{_short(target)}.{_host()}-{os.getpid()}-{secrets.token_hex(6)}{_SUFFIX}")


def _short(target: Path) -> str:
    """The name, or a digest of a long one: with what is added to it, it must still be the name of a file."""
    raw = os.fsencode(target.name)
    return target.name if len(raw) <= _LONG else hashlib.sha256(raw).hexdigest()


def clear_leftovers(target: Path) -> None:
    """Removes what writers of this target left that were killed."""
    pattern = re.compile(rf"\.{re.escape(_short(target))}\.([A-Za-z0-9]+)-(\d+)-[0-9a-f]{{12}}{re.escape(_SUFFIX)}")
    with contextlib.suppress(OSError):  # a folder that cannot be listed: others may clear it
        for entry in os.scandir(target.parent):
            match = pattern.fullmatch(entry.name)
            if match is not None and _abandoned(entry, match[1], int(match[2])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _abandoned(entry: os.DirEntry[str], host: str, process: int) -> bool:
    if host == _host() and sys.platform != "win32":  # there a signal 0 is no question, it kills
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False
    try:
        return time.time() - entry.stat().st_mtime > _FOREIGN
    except OSError:
        return False


def is_special(target: str | os.PathLike[str]) -> bool:
    """Whether it is a pipe or a device: these are written to, for a file in their place would be the end of them."""
    return os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target)


@contextmanager
def replacing(target: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """A binary stream that becomes the file once everything is written; with `durable` also through a power cut."""
    target = Path(os.path.realpath(target))
    if is_special(target):
        with os.fdopen(os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as raw:
            yield raw
        return
    name = temporary_name(target)
    clear_leftovers(target)
    try:
        with os.fdopen(
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb"
        ) as raw:
            yield raw
            if durable:
                raw.flush()
                os.fsync(raw.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
