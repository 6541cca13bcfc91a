""".wcsp text to models, piece by piece; the reader is csrc/io."""

from __future__ import annotations

from fginfer.core.door import check, ffi, lib, new_error
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
    def refused(self) -> float:
        """Bytes of tables that the file asked for when it had asked for too many, which was an error; else 0."""
        return float(lib.fgi_wcsp_refused(self._handle))

    def finish(self) -> tuple[Model, int, float]:
        """The model, how many functions the file gave (those over one variable and none are folded), its cutoff."""
        model, given, cutoff = ffi.new("fgi_model **"), ffi.new("int64_t *"), ffi.new("double *")
        check(lib.fgi_wcsp_finish(self._handle, model, given, cutoff, self._error), self._error, self._path)
        return Model(model[0]), int(given[0]), float(cutoff[0])
