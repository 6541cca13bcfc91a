"""The one place that touches the C core: pointers to arrays, and return codes turned into exceptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError

try:
    from fginfer._core import ffi, lib
except ModuleNotFoundError as error:
    if error.name != "fginfer._core":
        raise
    sources = Path(__file__).resolve().parents[2]
    raise ImportError(
        f"Python found the source code of fginfer in {sources} before the installed package, and its C core is not "
        "built there; start Python in another folder, or build it there with pip install -e ."
        if (sources / "csrc").is_dir()
        else "this installation of fginfer has no C core; install it again with pip install --force-reinstall fginfer",
        name="fginfer._core",
    ) from None

__all__ = ["VERSION", "borrowed", "check", "compiler", "cpu_path", "ffi", "lib", "new_error", "pointer"]

_CTYPES = {
    np.dtype(np.float64): "double[]",
    np.dtype(np.float32): "float[]",
    np.dtype(np.int64): "int64_t[]",
    np.dtype(np.int32): "int32_t[]",
    np.dtype(np.uint8): "uint8_t[]",
}


def pointer(array: NDArray[Any] | None) -> Any:
    """A C pointer to a contiguous array (NULL for None); the caller keeps the array alive during the call."""
    if array is None:
        return ffi.NULL
    if not array.flags.c_contiguous:
        raise ValueError("the core takes contiguous arrays only")
    return ffi.from_buffer(_CTYPES[array.dtype], array)  # a third of the time that array.ctypes takes


class _Borrowed:
    """Memory of the core seen as an array; keeps its owner alive for as long as the array lives."""

    def __init__(self, owner: Any, address: int, n: int, dtype: Any) -> None:
        self.owner = owner
        kind = np.dtype(dtype).str
        self.__array_interface__ = {"shape": (n,), "typestr": kind, "data": (address, True), "version": 3}


def borrowed(owner: Any, address: Any, n: int, dtype: Any) -> NDArray[Any]:
    """A read-only array over memory that belongs to the cffi handle `owner`."""
    if n == 0:
        return np.zeros(0, dtype)
    return np.asarray(_Borrowed(owner, int(ffi.cast("uintptr_t", address)), n, dtype))


def new_error() -> Any:
    return ffi.new("fgi_error *")


def check(rc: int, error: Any, path: str | None = None, bad_argument: type[FginferError] = SettingsError) -> None:
    """Raises the exception that belongs to a return code; does nothing for FGI_OK."""
    if rc == lib.FGI_OK:
        return
    message = ffi.string(error.message).decode("utf-8", "replace") or "unknown error"
    if rc == lib.FGI_NO_MEMORY:
        raise MemoryError(message)
    if rc in (lib.FGI_BAD_FORMAT, lib.FGI_IO):
        text = ffi.string(error.token).decode("utf-8", "replace")
        token = "".join(c if c.isprintable() else "?" for c in text)
        raise FormatError(message, path, int(error.line) or None, token if token or error.line else None)
    kinds: dict[int, type[FginferError]] = {
        lib.FGI_BAD_ARGUMENT: bad_argument,
        lib.FGI_BAD_MODEL: ModelError,
        lib.FGI_UNSUPPORTED: SolverError,
    }
    raise kinds[rc](message)


VERSION: str = ffi.string(lib.fgi_version()).decode()


def cpu_path() -> str:
    """The kernels in use: "avx2" or "scalar"."""
    text: bytes = ffi.string(lib.fgi_cpu_path())
    return text.decode()


def compiler() -> str:
    """Name and version of the compiler that built the core."""
    text: bytes = ffi.string(lib.fgi_compiler())
    return text.decode()
