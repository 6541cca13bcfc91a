"""What questions to a search index may look like: rows, labels, messages, exclusions and settings, looked at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import begins
from fginfer.core.search import Floats, Lists, Messages
from fginfer.errors import ModelError, SettingsError
from fginfer.options import check_count, check_whole

Message = Mapping[int, float] | tuple[ArrayLike, ArrayLike] | None
MOST_THREADS = 1024  # each has working memory of its own


def as_rows(rows: ArrayLike, columns: int | None = None, what: str = "rows") -> Floats:
    """A table of finite single-precision numbers; ModelError if it is not one."""
    try:
        if (given := np.asarray(rows)).dtype.kind in "cmM":  # complex numbers, times
            raise TypeError
        with np.errstate(over="ignore"):  # told below
            table = given.astype(np.float32, copy=False)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a table of numbers") from None
    if table.ndim != 2:
        raise ModelError(f"{what} must have two dimensions, not {table.ndim}")
    if columns is not None and table.shape[1] != columns:
        raise ModelError(f"{what} must have {columns} columns, as the index, not {table.shape[1]}")
    if not np.isfinite(table).all():
        raise ModelError(f"{what} hold NaN or infinite entries (or entries too large for single precision)")
    return table if table.strides[1:] == (4,) or table.shape[1] == 1 else np.ascontiguousarray(table)


def check_seed(seed: int) -> None:
    check_whole("seed", seed)
    if not 0 <= seed < 2**64:
        raise SettingsError(f"seed must lie in 0 .. 2^64 - 1, not {seed!r}")


def check_threads(threads: int, name: str = "n_jobs") -> None:
    check_whole(name, threads)
    if not 1 <= threads <= MOST_THREADS:
        raise SettingsError(f"{name} must be a number of threads, 1 .. {MOST_THREADS}, not {threads!r}")


def check_way(probes: Any, candidates: Any) -> None:
    """How a search goes: exactly, by clusters, or by codes."""
    for name, value in (("probes", probes), ("candidates", candidates)):
        if value is not None:
            check_count(name, value)
            if value < 1:
                raise SettingsError(f"{name} must be None or a positive whole number, not {value!r}")
    if probes is not None and candidates is not None:
        raise SettingsError("a search visits clusters (probes) or ranks all rows (candidates), not both")


def as_labels(labels: ArrayLike, n: int) -> NDArray[np.int32]:
    given = np.atleast_1d(np.asarray(labels))
    if given.size == 0:
        return np.zeros(0, np.int32)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ModelError("labels must be a flat list of integers")
    if given.min() < 0 or given.max() >= n:
        raise ModelError(f"labels must lie in 0 .. {n - 1}")
    return np.ascontiguousarray(given, np.int32)


def as_lists(excluded: Any, n: int, n_labels: int) -> Lists | None:
    """Exclusions as flat lists: one list for all queries, or one (or None) for each."""
    if excluded is None:
        return None
    if isinstance(excluded, (set, frozenset)):
        excluded = sorted(excluded)
    if not hasattr(excluded, "__getitem__"):
        raise ModelError(f"excluded must be a list of labels, or a list of such lists, not {excluded!r}")
    each = len(excluded) > 0 and (excluded[0] is None or np.ndim(excluded[0]) > 0)
    given = list(excluded) if each else [excluded] * n
    if len(given) != n:
        raise ModelError(f"{n} lists of exclusions are needed, one per query, not {len(given)}")
    parts = [np.unique(as_labels([] if e is None else e, n_labels)) for e in given]
    begin = begins([len(p) for p in parts])
    return begin, np.concatenate([*parts, np.zeros(0, np.int32)]).astype(np.int32)


def _message(message: Message, n_labels: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if message is None:
        return np.zeros(0, np.int32), np.zeros(0)
    try:
        given, numbers = (list(message), list(message.values())) if isinstance(message, Mapping) else message
        values = np.atleast_1d(np.asarray(numbers, np.float64))
    except (TypeError, ValueError):
        raise ModelError("a message must be {label: number} or (labels, numbers)") from None
    labels = as_labels(given, n_labels)
    if len(labels) != len(values):
        raise ModelError("a message needs as many values as labels")
    order = np.argsort(labels, kind="stable")
    labels, values = labels[order], values[order]
    if (labels[1:] == labels[:-1]).any() or not np.isfinite(values).all():
        raise ModelError("a message must give each label one finite value")
    return labels, values


def as_messages(messages: Any, n: int, n_labels: int) -> Messages | None:
    """Messages as flat lists: one for all queries, or one (or None) for each."""
    if messages is None:
        return None
    if not hasattr(messages, "__len__"):
        raise ModelError(f"messages must be a message, or a list of one for each query, not {messages!r}")
    given = [messages] * n if isinstance(messages, (Mapping, tuple)) else list(messages)
    if len(given) != n:
        raise ModelError(f"{n} messages are needed, one per query, not {len(given)}")
    parts = [_message(m, n_labels) for m in given]
    begin = begins([len(p[0]) for p in parts])
    labels = np.concatenate([*(p[0] for p in parts), np.zeros(0, np.int32)]).astype(np.int32)
    return begin, labels, np.concatenate([*(p[1] for p in parts), np.zeros(0)])
