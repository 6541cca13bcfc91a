"""Model files and checkpoints: an .npz of plain arrays with one JSON text inside. Loading never runs code."""

from __future__ import annotations

import json
import os
import tempfile
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
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
    except OSError as error:
        raise FormatError(error.strerror or str(error), str(path)) from None
    except (ValueError, KeyError, BadZipFile, EOFError) as error:
        raise FormatError(f"not an fginfer model ({error})", str(path)) from None
    if header.get("fginfer_model") != VERSION:
        raise FormatError(
            f"model file of version {header.get('fginfer_model')}, this fginfer reads {VERSION}", str(path)
        )
    return header, arrays


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
