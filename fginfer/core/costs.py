"""toulbar2's .wcsp and .cfn text to models, piece by piece; the readers are csrc/io."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


class WcspReader:
    """Takes the text of a file in pieces; errors name `path`, line and token. Tables may take `allowed` bytes."""

    def __init__(self, path: str, most_variables: int, allowed: float) -> None:
        self._path, self._error, out = path, new_error(), ffi.new("fgi_wcsp **")
        check(lib.fgi_wcsp_create(most_variables, allowed, out, self._error), self._error)
        self._handle = ffi.gc(out[0], lib.fgi_wcsp_free)

    def feed(self, piece: bytearray, n: int) -> None:
        """The first n bytes of the piece come next."""
        check(lib.fgi_wcsp_feed(self._handle, ffi.from_buffer(piece), n, self._error), self._error, self._path)

    @property
    def held(self) -> int:
        """Bytes that the reader holds."""
        return int(lib.fgi_wcsp_held(self._handle))

    @property
    def refused(self) -> tuple[float, bool]:
        """Bytes of tables that the file asked for when that was too many, which was an error, else 0; whether those of
        one table that it would have listed."""
        return float(lib.fgi_wcsp_refused(self._handle)), False

    def finish(self) -> tuple[Model, int, float]:
        """The model, how many functions the file gave (those over one variable and none are folded), its cutoff."""
        return _finished(lib.fgi_wcsp_finish, self._handle, self._error, self._path)


class CfnReader:
    """The same for .cfn; a single table whose entries are listed may take `most` bytes."""

    def __init__(self, path: str, most_variables: int, allowed: float, most: float) -> None:
        self._path, self._error, out = path, new_error(), ffi.new("fgi_cfn **")
        check(lib.fgi_cfn_create(most_variables, allowed, most, out, self._error), self._error)
        self._handle = ffi.gc(out[0], lib.fgi_cfn_free)

    def feed(self, piece: bytearray, n: int) -> None:
        check(lib.fgi_cfn_feed(self._handle, ffi.from_buffer(piece), n, self._error), self._error, self._path)

    @property
    def held(self) -> int:
        return int(lib.fgi_cfn_held(self._handle))

    @property
    def refused(self) -> tuple[float, bool]:
        listed = ffi.new("int *")
        return float(lib.fgi_cfn_refused(self._handle, listed)), bool(listed[0])

    def finish(self) -> tuple[Model, int, float]:
        return _finished(lib.fgi_cfn_finish, self._handle, self._error, self._path)

    def names(self) -> tuple[bytes, NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """All names in one text, where each begins (and the last ends), its owner and what it names: a variable where
        the owner is -1, a function where it is -2, else a label of the variable that owns it."""
        text = ffi.new("char **")
        n = int(lib.fgi_cfn_names(self._handle, text, ffi.NULL, ffi.NULL, ffi.NULL))
        begin, owner, value = np.zeros(n + 1, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int32)
        lib.fgi_cfn_names(self._handle, text, pointer(begin), pointer(owner), pointer(value))
        size = int(begin[-1])
        return (bytes(ffi.buffer(text[0], size)) if size else b""), begin, owner, value


def _finished(finish: Any, handle: Any, error: Any, path: str) -> tuple[Model, int, float]:
    model, given, cutoff = ffi.new("fgi_model **"), ffi.new("int64_t *"), ffi.new("double *")
    check(finish(handle, model, given, cutoff, error), error, path)
    return Model(model[0]), int(given[0]), float(cutoff[0])
