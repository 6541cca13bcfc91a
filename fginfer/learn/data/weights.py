"""Weights of examples and of classes: what `sample_weight` and `class_weight` do to encoded training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fginfer.core.learn import Edges, Kind
from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.examples import Encoded, Reals


def check_sample_weight(given: ArrayLike, n: int) -> Reals:
    """One finite number for each of n examples, not negative, and not all zero."""
    try:
        weight = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight must be numbers, one for each example") from None
    if weight.shape != (n,):
        raise DataError(f"sample_weight has the shape {weight.shape}, there are {n} examples: one weight for each")
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(f"sample_weight must be finite and not negative, that of example {i} is {weight[i]}")
    if not weight.any():
        raise DataError("sample_weight is zero for every example: there is nothing to learn from")
    return weight


def check_class_weight(given: Any) -> None:
    """What can be said before the classes are known."""
    if given is None or (isinstance(given, str) and given == "balanced"):
        return
    if not isinstance(given, Mapping):
        raise SettingsError(f"class_weight must be None, a dict or 'balanced', not {given!r}")
    for label, value in given.items():
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not number or not 0 <= value < np.inf:
            raise SettingsError(f"class_weight must be finite and not negative, that of {label!r} is {value!r}")


def class_weights(given: Any, truth: NDArray[Any], classes: NDArray[Any]) -> Reals:
    """The weight of each class: from a dict (1 for those it leaves out), or for "balanced" such that all classes
    have the same total weight and all tokens together keep theirs."""
    if isinstance(given, str):
        counts = np.bincount(truth, minlength=len(classes))
        used = counts > 0
        return np.where(used, len(truth) / (used.sum() * np.maximum(counts, 1)), 1.0)
    place = {label: k for k, label in enumerate(classes.tolist())}
    out = np.ones(len(classes))
    for label, value in given.items():
        if label not in place:
            raise DataError(f"class_weight names {label!r}, which is none of the {len(classes)} classes of y")
        out[place[label]] = value
    if not out[truth].any():
        raise DataError("class_weight is zero for every class of y: there is nothing to learn from")
    return out


def weigh_tokens(data: Encoded, weight: Reals) -> None:
    """Multiplies the losses of the tokens."""
    data.token_weight = weight if data.token_weight is None else data.token_weight * weight


def weigh_examples(data: Encoded, weight: Reals) -> None:
    """Multiplies the hinge losses of the examples, so that a weight of 2 is the same as an example given twice.

    The hinge is the largest of loss + score - score of the truth, and scores are linear in the features: it becomes
    `weight` times as large when the losses and the features are, and its argmax stays."""
    if data.kind == Kind.SETS and data.edges != Edges.NONE:
        raise SettingsError("sample_weight needs pairwise=False for label sets: interactions have no features to weigh")
    tokens = np.repeat(weight, np.diff(data.token_begin))
    weigh_tokens(data, tokens)
    lines = (
        tokens
        if data.choice_begin is None or data.kind == Kind.LABELS
        else np.repeat(tokens, np.diff(data.choice_begin))
    )
    data.rows = sp.csr_matrix(sp.diags(lines) @ data.rows)
    if data.edges != Edges.NONE:
        counts = np.diff(data.token_begin) - 1 if data.edge_begin is None else np.diff(data.edge_begin)
        edges = np.repeat(weight, counts)
        plain = sp.csr_matrix(np.ones((len(edges), 1))) if data.edge_rows is None else data.edge_rows
        data.edge_rows = sp.csr_matrix(sp.diags(edges) @ plain) if len(edges) else data.edge_rows
