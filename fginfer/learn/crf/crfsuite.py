"""CRFsuite's models as text (``crfsuite dump``, ``pycrfsuite.Tagger.dump``), to and from a ChainCRF."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, FormatError, MissingFileError, UnwritableError
from fginfer.learn.crf.estimators import ChainCRF
from fginfer.learn.data.strings import string_array
from fginfer.replacing import replacing

_SECTION = re.compile(r"^(FILEHEADER|LABELS|ATTRIBUTES|TRANSITIONS|STATE_FEATURES) = \{$")
_NAMED = re.compile(r"^\s*(\d+): (.*)$")
_ARROW = " --> "
_BIAS = "__BIAS__"
_WEIGHT = re.compile(r"^\s*\((\d+)\) (.*): (\S+)$")


def read_crfsuite(path: str | os.PathLike[str]) -> ChainCRF:
    """A trained ChainCRF with the labels, features and weights of a dumped model. Its tokens are dicts or lists of the
    same names that CRFsuite was given; what it predicts is what CRFsuite predicts.

    >>> from fginfer.learn import ChainCRF
    >>> write_crfsuite(ChainCRF(l1=0.01).fit([[["the"], ["dog"]]], [["D", "N"]]), "model.txt")
    >>> read_crfsuite("model.txt").classes_.tolist()
    ['D', 'N']
    """
    text = _read(path)
    labels: list[str] = []
    names: list[str] = []
    pairs: list[tuple[str, str, float]] = []
    states: list[tuple[str, str, float]] = []
    known: dict[str, set[str]] = {"LABELS": set(), "ATTRIBUTES": set()}
    section = ""
    for number, line in enumerate(text, 1):
        if found := _SECTION.match(line):
            section = found.group(1)
        elif line == "}":
            section = ""
        elif section in ("LABELS", "ATTRIBUTES"):
            if not (named := _NAMED.match(line)):
                raise FormatError("expected a number and a name", str(path), number, line.strip()[:60])
            (labels if section == "LABELS" else names).append(named.group(2))
            known[section].add(named.group(2))
        elif section in ("TRANSITIONS", "STATE_FEATURES"):
            from_names = known["LABELS" if section == "TRANSITIONS" else "ATTRIBUTES"]
            item = _weight(line, from_names, known["LABELS"])
            if item is None:
                raise FormatError(
                    "expected (type) name --> label: weight, of names in the lists", str(path), number,
                    line.strip()[:60],
                )  # fmt: skip
            (pairs if section == "TRANSITIONS" else states).append(item)
        elif line.strip() and not section:
            raise FormatError("not a dumped CRFsuite model", str(path), number, line.strip()[:60])
    if len(labels) < 2:
        raise FormatError("the model has less than two labels", str(path))
    try:
        return _build(labels, names, pairs, states)
    except DataError as error:
        raise FormatError(str(error), str(path)) from None


def _weight(line: str, names: set[str], labels: set[str]) -> tuple[str, str, float] | None:
    """(name, label, weight)."""
    found = _WEIGHT.match(line)
    if not found:
        return None
    try:
        value = float(found.group(3))
    except ValueError:
        return None
    readings = _readings(found.group(2), names, labels)
    return (*readings[0], value) if readings and np.isfinite(value) else None


def _readings(text: str, names: set[str], labels: set[str]) -> list[tuple[str, str]]:
    """All (name, label) that the text can be; both may have arrows in them, but must be known. Longest labels first."""
    cuts = [found.start() for found in re.finditer(_ARROW, text)]
    if len(cuts) > 1:  # a long line of arrows has as many readings as arrows, each as long as the line
        name, label = (max(map(len, known), default=0) for known in (names, labels))
        cuts = [at for at in cuts if at <= name and len(text) - at - len(_ARROW) <= label]
    both = [(text[:at], text[at + len(_ARROW) :]) for at in cuts]
    return [(name, label) for name, label in both if name in names and label in labels]


def _build(
    labels: list[str], names: list[str], pairs: list[tuple[str, str, float]], states: list[tuple[str, str, float]]
) -> ChainCRF:
    crf = ChainCRF(l1=0.0, fit_intercept=False)
    crf.classes_ = np.unique(string_array(labels, "labels"))
    crf.feature_names_ = np.unique(string_array(names, "attributes"))
    label = {str(name): k for k, name in enumerate(crf.classes_)}
    feature = {str(name): k for k, name in enumerate(crf.feature_names_)}
    k = len(label)
    unary, table = np.zeros((len(feature), k)), np.zeros((k, k))
    for name, to, value in states:
        unary[feature[name], label[to]] = value
    for name, to, value in pairs:
        table[label[name], label[to]] = value
    crf.weights_ = np.concatenate([unary.ravel(), table.ravel()])
    crf.n_features_in_, crf.n_edge_features_, crf.edge_kind_, crf.label_lists_ = len(feature), 1, "", False
    crf.status_, crf.n_iter_, crf.primal_, crf.dual_, crf.gap_ = "converted", 0, None, None, None
    crf.trace_, crf.history_, crf._last_run = [], [], None
    return crf


def write_crfsuite(crf: ChainCRF, path: str | os.PathLike[str]) -> None:
    """Writes a trained ChainCRF as CRFsuite dumps its models. An intercept becomes the feature ``__BIAS__``.

    >>> from fginfer.learn import ChainCRF
    >>> crf = ChainCRF(l1=0.01).fit([[["the"], ["dog"]]], [["D", "N"]])
    >>> write_crfsuite(crf, "model.txt")
    >>> [list(map(str, labels)) for labels in read_crfsuite("model.txt").predict([[["the"], ["dog"]]])]
    [['D', 'N']]
    """
    check_is_fitted(crf, "weights_")
    if crf.pairwise and crf.n_edge_features_ != 1:
        raise DataError("CRFsuite has one table of transitions, this model has one for each type of edge")
    names = list(map(str, crf.feature_names_ if crf.feature_names_ is not None else range(crf.n_features_in_)))
    labels = list(map(str, crf.classes_.tolist()))
    for name in (*names, *labels):
        if "\n" in name or "\r" in name:
            raise DataError(f"the name {name!r} has a line break, which a dumped model cannot hold")
    unary, tables = crf._split(crf.weights_, crf._width())
    if crf.fit_intercept:
        if _BIAS in names:
            raise DataError(
                f"a feature has the name {_BIAS}, which the intercept would get: train with fit_intercept=False"
            )
        names.append(_BIAS)
    table = tables[0] if len(tables) else np.zeros((len(labels), len(labels)))
    used = np.flatnonzero(unary.any(1))
    lines = ["FILEHEADER = {", "  magic: lCRF", "  size: 0", "  type: FOMC", "  version: 100"]
    lines += [f"  num_features: {np.count_nonzero(unary) + np.count_nonzero(table)}", f"  num_labels: {len(labels)}"]
    lines += [f"  num_attrs: {len(used)}", "}", "", "LABELS = {"]
    lines += [f"  {k:5d}: {label}" for k, label in enumerate(labels)] + ["}", "", "ATTRIBUTES = {"]
    lines += [f"  {k:5d}: {names[j]}" for k, j in enumerate(used)] + ["}", "", "TRANSITIONS = {"]
    if any(_ARROW in label for label in labels):
        known = set(names), set(labels)
        for j, y in np.argwhere(unary):
            if len(_readings(names[j] + _ARROW + labels[y], *known)) > 1:
                raise DataError(f"the feature {names[j]!r} with the label {labels[y]!r} can be read in two ways")
    lines += [f"  (1) {labels[a]} --> {labels[b]}: {float(table[a, b])!r}" for a, b in np.argwhere(table)]
    lines += ["}", "", "STATE_FEATURES = {"]
    lines += [f"  (0) {names[j]} --> {labels[y]}: {float(unary[j, y])!r}" for j, y in np.argwhere(unary)]
    lines += ["}", "", ""]
    try:
        with replacing(Path(path)) as file:
            file.write("\n".join(lines).encode())
    except OSError as error:
        raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error


def _read(path: str | os.PathLike[str]) -> list[str]:
    try:
        return Path(path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text ({error.reason})", str(path)) from None
    except FileNotFoundError:
        raise MissingFileError("there is no such file", str(path)) from None
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read ({getattr(error, 'strerror', error)})", str(path)) from None
