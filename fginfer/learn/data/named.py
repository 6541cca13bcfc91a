"""Features with names: tokens as dicts, strings or lists of strings, wherever a table of features may stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from warnings import warn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction import FeatureHasher

from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.examples import Choices, Example
from fginfer.learn.data.sequences import in_the_form_of, is_list, is_object_array
from fginfer.learn.data.strings import string_array
from fginfer.learn.data.tokens import attributes
from fginfer.options import is_number

UNSEEN = ("ignore", "warn", "error")


def check_named_settings(hash_features: Any, unseen: Any) -> None:
    if unseen not in UNSEEN:
        raise SettingsError(f"unseen must be one of {', '.join(UNSEEN)}, not {unseen!r}")
    if hash_features is not None and not (is_number(hash_features, whole=True) and 1 <= hash_features < 2**31):
        raise SettingsError(f"hash_features must be None or a number of columns, not {hash_features!r}")


def is_token(token: Any) -> bool:
    """A dict of features, a string (which is its only feature), or a collection of strings."""
    if isinstance(token, (Mapping, str)):
        return True
    return isinstance(token, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in token)


def _tables(X: Any, model: str) -> list[Any]:
    """What stands where tables of features may."""
    if isinstance(X, Example):
        return [X.features]
    if isinstance(X, Choices):
        return [X.rows]
    if model in ("multiclass", "multilabel"):
        return [X]
    if not is_list(X) and not is_object_array(X):
        return []
    return [_table(x, model) for x in X]


def _table(x: Any, model: str) -> Any:
    if isinstance(x, Example):
        return x.features
    if isinstance(x, Choices):
        return x.rows
    return x[0] if model == "graph" and isinstance(x, tuple) and len(x) in (2, 3) else x


def _are_tokens(table: Any) -> bool:
    return isinstance(table, (list, tuple)) and len(table) > 0 and is_token(table[0])


def has_names(X: Any, model: str) -> bool:
    """Whether the tokens have named features; some with and some without are a DataError."""
    found = [_are_tokens(table) for table in _tables(X, model)]
    if any(found) and not all(found):
        raise DataError(f"example {found.index(False)} has no tokens with named features, others have")
    return any(found)


class Columns:
    """From names to columns: those of a vocabulary, or so many that names are hashed into."""

    def __init__(self, names: NDArray[Any] | None = None, hashed: int | None = None, unseen: str = "ignore") -> None:
        self.names, self.hashed, self.unseen = names, hashed, unseen
        self._column = {} if names is None else {str(name): k for k, name in enumerate(names)}

    @classmethod
    def learn(cls, X: Any, model: str, hashed: int | None, unseen: str) -> Columns:
        if hashed is not None:
            return cls(None, int(hashed), unseen)
        found = {name for table in _tables(X, model) for _, pairs in _pairs(table) for name, _ in pairs}
        if not found:
            raise DataError("no token has a feature")
        return cls(string_array(sorted(found), "features"), None, unseen)

    def transform(self, X: Any, model: str) -> Any:
        """X with tables instead of tokens."""
        tables = [list(_pairs(table)) for table in _tables(X, model)]
        sizes = [len(table) for table in tables]
        tokens = [pairs for table in tables for _, pairs in table]
        rows = self._hash(tokens) if self.hashed is not None else self._look_up(tokens)
        ends = np.cumsum(sizes)
        parts = [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        if isinstance(X, (Example, Choices)) or model in ("multiclass", "multilabel"):
            return _put(X, parts[0], model)
        found = [_put(x, part, model) for x, part in zip(X, parts, strict=True)]
        return in_the_form_of(X, found)

    def _hash(self, tokens: list[list[tuple[str, float]]]) -> sp.csr_matrix:
        return FeatureHasher(self.hashed, input_type="pair").transform(tokens).tocsr()

    def _look_up(self, tokens: list[list[tuple[str, float]]]) -> sp.csr_matrix:
        columns: list[int] = []
        values: list[float] = []
        begin, unknown = [0], set()
        for pairs in tokens:
            for name, value in pairs:
                column = self._column.get(name)
                if column is None:
                    unknown.add(name)
                else:
                    columns.append(column)
                    values.append(value)
            begin.append(len(columns))
        if unknown and self.unseen != "ignore":
            few = ", ".join(map(repr, sorted(unknown)[:5])) + (", ..." if len(unknown) > 5 else "")
            message = f"{len(unknown)} features were never seen in training: {few}"
            if self.unseen == "error":
                raise DataError(f'{message}; unseen="ignore" leaves them out')
            warn(f"{message}; they are left out", UserWarning, stacklevel=5)
        shape = (len(begin) - 1, len(self._column))
        rows = sp.csr_matrix((np.array(values), np.array(columns, np.int32), np.array(begin)), shape=shape)
        rows.sum_duplicates()
        return rows


def _pairs(table: Any) -> Any:
    """(place, [(name, value), ...]) of the tokens of one example."""
    for t, token in enumerate(table):
        if not is_token(token):
            raise DataError(f"token {t} is no dict of features, string or list of strings: {token!r}")
        yield t, [(token, 1.0)] if isinstance(token, str) else list(attributes(token, f"token {t}"))


def _put(x: Any, rows: sp.csr_matrix, model: str) -> Any:
    if isinstance(x, Example):
        return replace(x, features=rows)
    if isinstance(x, Choices):
        return replace(x, rows=rows)
    return (rows, *x[1:]) if model == "graph" and isinstance(x, tuple) else rows


def restore_names(names: Any, width: int) -> NDArray[Any] | None:
    """Names from a model file."""
    if names is None:
        return None
    if names.ndim != 1 or names.dtype.kind != "U" or len(names) != width or len(np.unique(names)) != width:
        raise DataError("its features have other names")
    return np.asarray(names)
