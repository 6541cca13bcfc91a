"""Lists of sequences as scikit-learn's tools want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.errors import DataError


class Sequences(Sequence[Any]):
    """A list of sequences that scikit-learn's tools can handle: it is taken apart by arrays of places, joined by
    `numpy.concatenate`, and where a measure wants an array (``scoring="accuracy"``) it is that of all tokens' labels.

    >>> parts = Sequences([["a", "b"], ["c"]])
    >>> parts.shape, parts[np.array([1])], np.asarray(parts).tolist()
    ((2,), Sequences([['c']]), ['a', 'b', 'c'])
    """

    def __init__(self, parts: Iterable[Any] = ()) -> None:
        self.parts = list(parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):  # scikit-learn asks for parts[places, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError(f"sequences have one axis, not {len(key)}")
            key = key[0]
        places = np.arange(len(self.parts))[key]
        return self.parts[places] if np.ndim(places) == 0 else Sequences(self.parts[i] for i in places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if any(sp.issparse(x) or not isinstance(x, (list, tuple, np.ndarray)) or np.ndim(x) != 1 for x in self.parts):
            raise DataError(
                "sequences of tables are not one table: PerToken(StandardScaler()) applies a scaler, or any other"
                " transformer of tables, to the tokens of each"
            )
        return np.asarray(np.concatenate([np.asarray(x) for x in self.parts]) if self.parts else [], dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.concatenate and all(isinstance(part, Sequences) for part in args[0]):
            return Sequences(x for part in args[0] for x in part.parts)
        return func(*map(_flat, args), **{name: _flat(x) for name, x in kwargs.items()})

    def __repr__(self) -> str:
        return f"Sequences({self.parts!r})"


def is_list(X: Any) -> bool:
    """Whether it lists examples, or what belongs to them: a list, a tuple, Sequences, a pandas column of lists."""
    return isinstance(X, (list, tuple, Sequences)) or is_column_of_lists(X)


def is_column_of_lists(X: Any) -> bool:
    """Whether it is a Series (of pandas, which is not imported for that) whose entries are lists, sets or tables."""
    return hasattr(X, "iloc") and X.ndim == 1 and X.dtype == object and len(X) > 0 and not np.isscalar(X.iloc[0])


def is_object_array(X: Any) -> bool:
    """Whether it is an array whose entries may be sequences."""
    return isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1


def in_the_form_of(X: Any, parts: list[Any]) -> Any:
    """The parts as X has its own: Sequences, a flat array of objects, or a list."""
    if isinstance(X, Sequences):
        return Sequences(parts)
    if not is_object_array(X):
        return parts
    out = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        out[i] = part
    return out


def _flat(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Sequences) else x
