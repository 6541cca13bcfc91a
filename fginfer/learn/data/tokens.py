"""Tokens as dicts (or lists) of named features, the form that CRFsuite's users have: names become columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.errors import DataError
from fginfer.learn.data.sequences import is_list
from fginfer.learn.data.strings import string_array


def are_token_dicts(X: Any) -> bool:
    """Whether X is a list of sequences whose tokens are dicts, names or collections of names; sequences without any
    token pass, too, and are refused where tokens are read."""
    if not is_list(X):
        return False
    for sequence in X:
        if not isinstance(sequence, (list, tuple)):
            return False
        for token in sequence:
            return isinstance(token, (Mapping, str)) or (
                isinstance(token, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in token)
            )
    return len(X) > 0


def attributes(token: Any, where: str) -> Iterator[tuple[str, float]]:
    """Names and values of one token: numbers (and bools) are values, a text value becomes part of the name
    (``{"word": "in"}`` is ``word:in``), dicts and lists inside join their names with ``:``. A token that is a text is
    its only name."""
    if isinstance(token, str):
        yield token, 1.0
        return
    if not isinstance(token, Mapping):
        for name in token:
            if not isinstance(name, str):
                raise DataError(f"{where}: names of features are texts, not {name!r}")
            yield name, 1.0
        return
    for name, value in token.items():
        if not isinstance(name, str):
            raise DataError(f"{where}: names of features are texts, not {name!r}")
        if isinstance(value, str):
            yield f"{name}:{value}", 1.0
        elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
            for inner, number in attributes(value, where):
                yield f"{name}:{inner}", number
        else:
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise DataError(f"{where}: the feature {name!r} has the value {value!r}") from None
            if not np.isfinite(number):
                raise DataError(f"{where}: the feature {name!r} is not finite")
            yield name, number


class TokenDicts:
    """The columns of named features: those seen when it was made, in the order of their names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names: NDArray[Any] = string_array(sorted(names), "features")
        self._column = {str(name): k for k, name in enumerate(self.names)}

    @classmethod
    def of(cls, X: Sequence[Sequence[Any]]) -> TokenDicts:
        found = {name for i, s in enumerate(X) for t, token in enumerate(s) for name, _ in attributes(token, _at(i, t))}
        if not found:
            raise DataError("no token has a feature")
        return cls(found)

    def transform(self, X: Sequence[Sequence[Any]]) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """(rows, offsets); names that were never seen are left out."""
        columns: list[int] = []
        values: list[float] = []
        begin = [0]
        for i, sequence in enumerate(X):
            if len(sequence) == 0:
                raise DataError(f"example {i} is empty")
            for t, token in enumerate(sequence):
                for name, value in attributes(token, _at(i, t)):
                    column = self._column.get(name)
                    if column is not None:
                        columns.append(column)
                        values.append(value)
                begin.append(len(columns))
        rows = sp.csr_matrix(
            (np.array(values), np.array(columns, np.int32), np.array(begin)), shape=(len(begin) - 1, len(self.names))
        )
        rows.sum_duplicates()
        return rows, begins([len(s) for s in X])


def _at(i: int, t: int) -> str:
    return f"example {i}, token {t}"
