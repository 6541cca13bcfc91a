"""UAI text to models and back, piece by piece; the reader and the writer are csrc/io."""

from __future__ import annotations

from collections.abc import Iterator

from fginfer.core.door import check, ffi, lib, new_error
from fginfer.core.model import Model


class UaiReader:
    """Takes the text of a file in pieces; errors name `path`, line and token."""

    def __init__(self, path: str, log_values: bool, threads: int = 1) -> None:
        self._path, self._error, out = path, new_error(), ffi.new("fgi_uai **")
        check(lib.fgi_uai_create(log_values, threads, out, self._error), self._error)
        self._handle = ffi.gc(out[0], lib.fgi_uai_free)

    def feed(self, piece: bytearray, n: int) -> None:
        """The first n bytes of the piece come next."""
        check(lib.fgi_uai_feed(self._handle, ffi.from_buffer(piece), n, self._error), self._error, self._path)

    @property
    def held(self) -> int:
        """Bytes that the reader holds."""
        return int(lib.fgi_uai_held(self._handle))

    def finish(self) -> tuple[Model, int]:
        """The model, and how many factors the file gave (those over one variable and none are folded)."""
        model, given = ffi.new("fgi_model **"), ffi.new("int64_t *")
        check(lib.fgi_uai_finish(self._handle, model, given, self._error), self._error, self._path)
        return Model(model[0]), int(given[0])


def uai_text(model: Model, path: str, log_values: bool, bayes: bool, piece: int) -> Iterator[memoryview]:
    """The text of a model in pieces of at most `piece` bytes; each is valid until the next is asked for."""
    error, out = new_error(), ffi.new("fgi_uai_writer **")
    check(lib.fgi_uai_writer_create(model.handle, log_values, bayes, out, error), error)
    writer = ffi.gc(out[0], lib.fgi_uai_writer_free)
    buffer, length = bytearray(piece), ffi.new("int64_t *")
    text, view = ffi.from_buffer(buffer), memoryview(buffer)
    while True:
        check(lib.fgi_uai_writer_next(writer, text, piece, length, error), error, path)
        if length[0] == 0:
            return
        yield view[: length[0]]
