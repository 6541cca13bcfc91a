"""Model files and checkpoints: an .npz of plain arrays with one JSON text inside. Loading never runs code."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE, load_arrays, other_archive, write_arrays
from fginfer.errors import FormatError, UnwritableError
from fginfer.options import file_named
from fginfer.replacing import replacing

VERSION = 2  # files of version 1 have no check sum


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Writes beside the target, then renames: a reader, or a killed writer, never leaves half a file."""
    text = np.frombuffer(json.dumps({"fginfer_model": VERSION, **header}).encode(), np.uint8)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which model files cannot")
    try:
        with replacing(file_named(path, "save"), durable=True) as file:
            write_arrays(file, {"header": text, **arrays})
    except OSError as error:
        raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file that :func:`write` made; whatever else is there is a FormatError. Runs no code."""
    arrays = load_arrays(path, "a learned model", has_checksum=_has_checksum)
    if "header" not in arrays:
        raise FormatError(f"not a learned model{other_archive(arrays)}", str(path))
    try:
        header = _header(arrays)
    except DAMAGE as error:
        raise FormatError(f"not a learned model, or damaged ({str(error)[:200]})", str(path)) from None
    version = header.get("fginfer_model")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise FormatError(f"model file of version {str(version)[:40]}, this fginfer reads up to {VERSION}", str(path))
    return header, {name: array for name, array in arrays.items() if name != "header"}


def _header(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    header = json.loads(bytes(arrays["header"]).decode())
    return header if isinstance(header, dict) else {}


def _has_checksum(arrays: dict[str, NDArray[Any]]) -> bool:
    return "header" in arrays and _header(arrays).get("fginfer_model") != 1


def plain(value: Any) -> Any:
    """The value as JSON keeps it (numpy's numbers become Python's); TypeError if it does not."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is not kept in model files")


def fingerprint(data: Any, settings: dict[str, Any]) -> str:
    """A digest of data and settings, so that a checkpoint is never continued on something else."""
    import hashlib

    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name in sorted(vars(data)):
        value = getattr(data, name)
        for part in (value.indptr, value.indices, value.data) if hasattr(value, "indptr") else (value,):
            digest.update(name.encode())
            if isinstance(part, np.ndarray):
                digest.update(
                    str(part.dtype).encode() + str(part.shape).encode() + np.ascontiguousarray(part).tobytes()
                )
            else:
                digest.update(repr(part).encode())
    return digest.hexdigest()
