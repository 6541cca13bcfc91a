"""The one place that touches the C core: pointers to arrays, and return codes turned into exceptions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer._core import ffi, lib
from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError

__all__ = ["check", "cpu_path", "ffi", "lib", "new_error", "pointer"]

_CTYPES = {
    np.dtype(np.float64): "double *",
    np.dtype(np.int64): "int64_t *",
    np.dtype(np.int32): "int32_t *",
    np.dtype(np.uint8): "uint8_t *",
}


def pointer(array: NDArray[Any] | None) -> Any:
    """A C pointer to a contiguous array (NULL for None); the caller keeps the array alive during the call."""
    if array is None:
        return ffi.NULL
    if not array.flags.c_contiguous:
        raise ValueError("the core takes contiguous arrays only")
    return ffi.cast(_CTYPES[array.dtype], array.ctypes.data)


def new_error() -> Any:
    return ffi.new("fgi_error *")


def check(rc: int, error: Any, path: str | None = None) -> None:
    """Raises the exception that belongs to a return code; does nothing for FGI_OK."""
    if rc == lib.FGI_OK:
        return
    message = ffi.string(error.message).decode("utf-8", "replace") or "unknown error"
    if rc == lib.FGI_NO_MEMORY:
        raise MemoryError(message)
    if rc in (lib.FGI_BAD_FORMAT, lib.FGI_IO):
        token = ffi.string(error.token).decode("utf-8", "replace")
        raise FormatError(message, path, int(error.line) or None, token or None)
    kinds: dict[int, type[FginferError]] = {
        lib.FGI_BAD_ARGUMENT: SettingsError,
        lib.FGI_BAD_MODEL: ModelError,
        lib.FGI_UNSUPPORTED: SolverError,
    }
    raise kinds[rc](message)


def cpu_path() -> str:
    """The kernels in use: "avx2" or "scalar"."""
    text: bytes = ffi.string(lib.fgi_cpu_path())
    return text.decode()
