"""Model files and checkpoints: an .npz of plain arrays with one JSON text inside. Loading never runs code."""

from __future__ import annotations

import json
import os
import secrets
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import FormatError

VERSION = 1


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Writes beside the target, then renames: a reader, or a killed writer, never leaves half a file."""
    target = Path(path)
    text = np.frombuffer(json.dumps({"fginfer_model": VERSION, **header}).encode(), np.uint8)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which model files cannot")
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:  # with the permissions of any other file
            np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file that :func:`write` made; whatever else is there is a FormatError. Runs no code."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PK\x03\x04":  # np.load takes other files, too
                raise FormatError("not an fginfer model", str(path))
            file.seek(0)
            with np.load(file, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
    except OSError as error:
        raise FormatError(error.strerror or str(error), str(path)) from None
    except (ValueError, KeyError, BadZipFile, EOFError, MemoryError, NotImplementedError, zlib.error) as error:
        raise FormatError(f"not an fginfer model, or damaged ({error})", str(path)) from None
    if not isinstance(header, dict) or header.get("fginfer_model") != VERSION:
        version = header.get("fginfer_model") if isinstance(header, dict) else None
        raise FormatError(f"model file of version {version}, this fginfer reads {VERSION}", str(path))
    return header, arrays


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
