"""Window features for sequences of columns: templates over neighbouring tokens become binary features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins, owners
from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.strings import string_array

Template = tuple[tuple[int, int], ...]
_OUTSIDE, _UNKNOWN = 0, 1  # codes beside those of known strings, which begin at 2


def parse_template(text: str) -> Template:
    """``"0[-1]|1[0]"``: column 0 of the token before, joined with column 1 of this one."""
    parts = []
    for part in text.split("|"):
        column, bracket, offset = part.strip().partition("[")
        try:
            parts.append((int(column), int(offset.removesuffix("]")) if bracket else 0))
        except ValueError:
            raise SettingsError(f"template {text!r}: expected column[offset], joined by |") from None
        if parts[-1][0] < 0:
            raise SettingsError(f"template {text!r}: columns are counted from 0")
    return tuple(parts)


# Words and tags in a window of five, their bigrams, and tag trigrams: the usual set for chunking.
CHUNKING = (
    "0[-2]", "0[-1]", "0[0]", "0[1]", "0[2]", "0[-1]|0[0]", "0[0]|0[1]",
    "1[-2]", "1[-1]", "1[0]", "1[1]", "1[2]", "1[-2]|1[-1]", "1[-1]|1[0]", "1[0]|1[1]", "1[1]|1[2]",
    "1[-2]|1[-1]|1[0]", "1[-1]|1[0]|1[1]", "1[0]|1[1]|1[2]",
)  # fmt: skip


def default_templates(columns: int) -> tuple[str, ...]:
    """A window of five over each column, and bigrams; with two columns the chunking set."""
    if columns == 2:
        return CHUNKING
    out = [f"{c}[{o}]" for c in range(columns) for o in (-2, -1, 0, 1, 2)]
    return tuple(out + [f"{c}[{o}]|{c}[{o + 1}]" for c in range(columns) for o in (-1, 0)])


MOST_AFFIXES = 100  # letters at the beginning and the end of words


class WindowFeatures:
    """Turns sentences (lists of tokens, each a list of columns) into one CSR matrix of binary features.

    min_count: features seen less often in training are left out. affixes: also suffixes and prefixes of column 0 up to
    this length, and its shape (capitals, digits, punctuation).

    >>> sentences = [[["the", "D"], ["dog", "N"]], [["a", "D"]]]
    >>> rows, offsets = WindowFeatures(["0[0]", "0[-1]|1[0]"]).fit(sentences).transform(sentences)
    >>> rows.shape[0], offsets.tolist()
    (3, [0, 2, 3])
    """

    def __init__(self, templates: Sequence[str], min_count: int = 1, affixes: int = 0) -> None:
        if not templates or min_count < 1 or affixes < 0:
            raise SettingsError("there must be a template, min_count must be at least 1, affixes must not be negative")
        if affixes > MOST_AFFIXES:  # two templates each: a model file could ask for billions
            raise SettingsError(f"affixes must be at most {MOST_AFFIXES}, not {affixes}")
        self.templates = tuple(templates)
        self.min_count, self.affixes = min_count, affixes
        self._parsed = [parse_template(t) for t in templates]
        self.vocabularies: list[NDArray[Any]] = []
        self.keys: list[NDArray[np.int64]] = []

    # ---- columns

    def _columns(self, sentences: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
        width = 1 + max(column for template in self._parsed for column, _ in template)
        tokens = [token for sentence in sentences for token in sentence]
        if any(len(token) < width for token in tokens):
            raise DataError(f"the templates use {width} columns, a token has fewer")
        columns = [[token[c] for token in tokens] for c in range(width)]
        words = columns[0]
        for n in range(1, self.affixes + 1):
            columns.append([w[-n:] for w in words])
            columns.append([w[:n] for w in words])
        if self.affixes:
            columns.append([shape(w) for w in words])
        return columns

    def _all_templates(self) -> list[Template]:
        width = 1 + max(column for template in self._parsed for column, _ in template)
        extra = 2 * self.affixes + 1 if self.affixes else 0
        return [*self._parsed, *((((width + k, 0),)) for k in range(extra))]

    def _codes(self, columns: list[list[str]]) -> list[NDArray[np.int64]]:
        out = []
        for strings, known in zip(columns, self.vocabularies, strict=True):
            array = string_array(strings, "tokens")
            at = np.minimum(np.searchsorted(known, array), len(known) - 1)
            out.append(np.where(known[at] == array, at + 2, _UNKNOWN))
        return out

    def _template_keys(self, codes: list[NDArray[np.int64]], begin: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """One number a token and template: the codes of its parts in mixed radix; -1 where a part is unknown."""
        n = int(begin[-1])
        owner = owners(begin)
        position = np.arange(n)
        out = []
        for template in self._all_templates():
            key, unknown = np.zeros(n, np.int64), np.zeros(n, bool)
            for column, offset in template:
                source = position + offset
                inside = (source >= 0) & (source < n)
                source = np.clip(source, 0, n - 1)
                inside &= owner[source] == owner
                code = np.where(inside, codes[column][source], _OUTSIDE)
                unknown |= inside & (code == _UNKNOWN)
                key = key * (len(self.vocabularies[column]) + 2) + code
            out.append(np.where(unknown, -1, key))
        return out

    # ---- learning and applying

    def fit(self, sentences: Sequence[Sequence[Sequence[str]]]) -> WindowFeatures:
        """Collects the features of the sentences that occur often enough."""
        columns, begin = self._columns(sentences), _begin(sentences)
        self.vocabularies = [np.unique(string_array(c, "tokens")) for c in columns]
        sizes = [len(v) + 2.0 for v in self.vocabularies]
        for template in self._all_templates():
            if np.prod([sizes[c] for c, _ in template]) >= 2.0**62:
                raise SettingsError("a template joins more than 64 bits of different strings")
        self.keys = []
        for key in self._template_keys(self._codes(columns), begin):
            found, count = np.unique(key[key >= 0], return_counts=True)
            self.keys.append(found[count >= self.min_count])
        if not any(len(keys) for keys in self.keys):
            raise DataError(f"no feature is seen {self.min_count} times")
        return self

    def transform(self, sentences: Sequence[Sequence[Sequence[str]]]) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """(features of all tokens, offsets of the sentences)."""
        if not self.keys:
            raise SettingsError("fit the features first")
        columns, begin = self._columns(sentences), _begin(sentences)
        rows, found, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for key, known in zip(self._template_keys(self._codes(columns), begin), self.keys, strict=True):
            if len(known):
                at = np.minimum(np.searchsorted(known, key), len(known) - 1)
                hit = np.flatnonzero(known[at] == key)
                rows.append(hit)
                found.append(at[hit] + first)
            first += len(known)
        row, column = np.concatenate(rows), np.concatenate(found)
        matrix = sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(int(begin[-1]), first))
        matrix.sort_indices()
        return matrix, begin

    # ---- files

    def export(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Settings and arrays from which `restore` makes the same features."""
        header = {"templates": list(self.templates), "min_count": self.min_count, "affixes": self.affixes}
        arrays = {f"vocabulary_{k}": v for k, v in enumerate(self.vocabularies)}
        return header, {**arrays, **{f"keys_{k}": v for k, v in enumerate(self.keys)}}

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> WindowFeatures:
        """The reverse of :meth:`export`; arrays that do not fit are a DataError."""
        out = cls(header["templates"], header["min_count"], header["affixes"])
        templates = out._all_templates()
        width = 1 + max(column for template in templates for column, _ in template)
        out.vocabularies = [arrays[f"vocabulary_{k}"] for k in range(width)]
        out.keys = [arrays[f"keys_{k}"] for k in range(len(templates))]
        if any(v.ndim != 1 or v.dtype.kind != "U" or not len(v) for v in out.vocabularies):
            raise DataError("a vocabulary is not a list of strings")
        if any(k.ndim != 1 or k.dtype != np.int64 for k in out.keys):
            raise DataError("the features are not lists of numbers")
        return out

    @property
    def n_features(self) -> int:
        """Columns of what `transform` gives."""
        return sum(len(keys) for keys in self.keys)


def shape(word: str) -> str:
    """Capitals, lower case, digits and the rest, runs cut to one: "McDonald's" is "XxXx-x"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else "-" for c in word]
    return "".join(k for k, before in zip(kinds, ["", *kinds], strict=False) if k != before)


def _begin(sentences: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    lengths = [len(s) for s in sentences]
    if not lengths or min(lengths) == 0:
        raise DataError("a sentence is empty" if lengths else "there are no sentences")
    return begins(lengths)
