"""Scores of a batch, checked and in one form; and gradients with respect to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.nn.structure import Reals, Structure


@dataclass(frozen=True)
class Scores:
    """Unaries (batch, labels of all variables); tables (batch or 1, entries); weights (batch or 1, factors)."""

    structure: Structure
    unaries: Reals
    tables: Reals
    weights: Reals | None

    @property
    def batch(self) -> int:
        return len(self.unaries)

    def row(self, kind: str, item: int) -> Reals:
        """Those of one item; rows that all items share are stored once."""
        rows: list[Reals] = getattr(self, kind)
        return rows[item if len(rows) > 1 else 0]

    def with_unaries(self, unaries: Reals) -> Scores:
        return Scores(self.structure, unaries, self.tables, self.weights)

    def states(self) -> Reals:
        """The scores of all states of all factors: (batch or 1, states)."""
        out = self.tables[:, self.structure.state_value]
        out = out if self.weights is None else out * self.weights[:, self.structure.state_factor]
        return np.ascontiguousarray(out)

    def at(self, labels: NDArray[np.int32]) -> Reals:
        """The score of one labeling an item."""
        s = self.structure
        own = np.take_along_axis(self.unaries, s.label_begin[:-1] + labels, 1).sum(1)
        total: Reals = own + self.at_factors(labels).sum(1) if s.n_factors else own
        return total

    def at_factors(self, labels: NDArray[np.int32]) -> Reals:
        """What each factor adds to it."""
        values = self.table_values(labels)
        return values if self.weights is None else values * self.weights

    def table_values(self, labels: NDArray[np.int32]) -> Reals:
        """The entry that each factor reads."""
        s = self.structure
        entries = s.table_begin[s.table_ids] + s.states_at(labels)
        tables = np.broadcast_to(self.tables, (self.batch, s.n_values))
        values: Reals = np.take_along_axis(tables, entries, 1)
        return values


@dataclass(frozen=True)
class Gradients:
    """Derivatives in the shapes in which the scores were given; None for scores that were not given.

    Where one table or weight served a whole batch they are summed over it.
    """

    unaries: Reals
    tables: Reals | None = None
    weights: Reals | None = None


@dataclass(frozen=True)
class Loss:
    """The loss of each item, and the gradients of their sum."""

    values: Reals
    gradients: Gradients


@dataclass(frozen=True)
class Moments:
    """Marginals of labels (batch, labels of all variables) and of the states of all factors (batch, states)."""

    labels: Reals
    states: Reals


@dataclass(frozen=True)
class Rows:
    """Gradients of each item on its own, a row each; None for what is not given."""

    unaries: Reals
    tables: Reals | None
    weights: Reals | None

    def plus(self, other: Rows, factor: float) -> Rows:
        """This and so many times the other."""

        def add(a: Reals | None, b: Reals | None) -> Reals | None:
            return None if a is None or b is None else a + factor * b

        own = self.unaries + factor * other.unaries
        return Rows(own, add(self.tables, other.tables), add(self.weights, other.weights))


def rows_of_labels(scores: Scores, labels: NDArray[np.int32]) -> Rows:
    """The gradients of the scores of one labeling an item."""
    s, batch = scores.structure, len(labels)
    own = np.zeros((batch, s.n_labels))
    np.put_along_axis(own, s.label_begin[:-1] + labels, 1.0, 1)
    if scores.weights is not None:
        return Rows(own, None, scores.table_values(labels))
    at = s.table_begin[s.table_ids] + s.states_at(labels) + np.arange(batch)[:, None] * s.n_values
    counts = np.bincount(at.reshape(-1), minlength=batch * s.n_values).reshape(batch, s.n_values)
    return Rows(own, cast(Reals, counts.astype(np.float64)), None)


def rows_of_moments(scores: Scores, moments: Moments) -> Rows:
    """The gradients of each item's expected score."""
    s, states = scores.structure, moments.states
    if scores.weights is not None:
        table = np.broadcast_to(scores.tables, (scores.batch, s.n_values))[:, s.state_value]
        if not s.n_factors:
            return Rows(moments.labels, None, np.zeros((scores.batch, 0)))
        return Rows(moments.labels, None, np.add.reduceat(states * table, s.state_begin[:-1], 1))
    at = s.state_value + np.arange(len(states))[:, None] * s.n_values
    sums = np.bincount(at.reshape(-1), states.reshape(-1), len(states) * s.n_values)
    return Rows(moments.labels, cast(Reals, sums.reshape(len(states), s.n_values)), None)


# -- shapes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shapes:
    """How scores were given: the leading axes of a batch, and the shape of each."""

    structure: Structure
    lead: tuple[int, ...]
    unaries: tuple[int, ...]
    tables: tuple[int, ...] | None
    weights: tuple[int, ...] | None

    def gradients(self, rows: Rows) -> Gradients:
        """From a row an item to the shapes given."""

        def back(of: Reals | None, shape: tuple[int, ...] | None, size: int) -> Reals | None:
            if of is None or shape is None:
                return None
            shared = int(np.prod(shape, dtype=np.int64)) == size
            return (of.sum(0) if shared else of).reshape(shape)

        s = self.structure
        tables, weights = back(rows.tables, self.tables, s.n_values), back(rows.weights, self.weights, s.n_factors)
        return Gradients(rows.unaries.reshape(self.unaries), tables, weights)


def unary_shapes(s: Structure) -> list[tuple[int, ...]]:
    """Shapes that the unaries of one item may have."""
    both: list[tuple[int, ...]] = [(s.n_labels,)]
    return [(s.n_variables, s.uniform), *both] if s.uniform is not None else both


def table_shapes(s: Structure) -> list[tuple[int, ...]]:
    """Shapes that the tables of one item may have."""
    shapes = {*s.table_shapes}
    one: list[tuple[int, ...]] = [(s.n_values,)]
    if len(shapes) == 1:
        shape = s.table_shapes[0]
        one = [(len(s.table_shapes), *shape), *([shape] if len(s.table_shapes) == 1 else []), *one]
    return one


def lead_of(name: str, shape: tuple[int, ...], allowed: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The axes before those of one item."""
    for item in allowed:
        n = len(shape) - len(item)
        if n >= 0 and shape[n:] == item:
            return shape[:n]
    wanted = " or ".join(f"(..., {', '.join(map(str, item))})" for item in allowed)
    raise ModelError(f"{name} must have the shape {wanted}, not {shape}: does the batch have another structure?")


def check_shapes(s: Structure, unaries: Any, tables: Any, weights: Any) -> Shapes:
    """Whether scores fit the structure; anything with a shape will do."""
    lead = lead_of("unaries", tuple(unaries.shape), unary_shapes(s))
    if s.known is not None:
        if tables is not None:
            raise ModelError("the structure knows its tables: scores are unaries and weights")
    elif tables is None and s.n_factors:
        raise ModelError("scores of the factors are missing: tables")
    one_weight: list[tuple[int, ...]] = [(s.n_factors,)]
    for name, given, allowed in (("tables", tables, table_shapes(s)), ("weights", weights, one_weight)):
        if given is None:
            continue
        if name == "weights" and s.known is None:
            raise ModelError("weights multiply tables that the structure knows: Structure(..., tables=[...])")
        found = lead_of(name, tuple(given.shape), allowed)
        if found not in ((), lead):
            raise ModelError(f"{name} are for a batch of {found}, unaries for one of {lead}")
    return Shapes(
        s,
        lead,
        tuple(unaries.shape),
        None if tables is None else tuple(tables.shape),
        None if weights is None else tuple(weights.shape),
    )


def check_scores(s: Structure, unaries: Any, tables: Any = None, weights: Any = None) -> tuple[Scores, Shapes]:
    """The batch as the methods take it. -inf forbids labels and states; NaN and inf are refused."""
    unaries, tables, weights = _array("unaries", unaries), _array("tables", tables), _array("weights", weights)
    if unaries is None:
        raise ModelError("unaries are missing")
    shapes = check_shapes(s, unaries, tables, weights)
    if weights is not None and not np.isfinite(weights).all():
        raise ModelError(f"weights must be finite, not {weights[~np.isfinite(weights)][0]}")
    values = s.known_values if s.known_values is not None else np.zeros(0) if tables is None else tables
    if s.known is not None and weights is None:
        weights = np.ones(s.n_factors)
    own = unaries.reshape(-1, s.n_labels)
    _check_allowed(s, own)
    given = Scores(s, np.ascontiguousarray(own), _rows(values, s.n_values), None)
    if weights is not None:
        given = replace(given, weights=_rows(weights, s.n_factors))
    return given, shapes


def _rows(values: Reals, size: int) -> Reals:
    return np.ascontiguousarray(values.reshape(-1, size)) if size else np.zeros((1, 0))


def _check_allowed(s: Structure, unaries: Reals) -> None:
    if not np.isneginf(unaries).any():
        return
    best = np.maximum.reduceat(unaries, s.label_begin[:-1], 1)
    if np.isneginf(best).any():
        item, variable = np.argwhere(np.isneginf(best))[0].tolist()
        raise ModelError(f"item {item}: every label of variable {variable} is forbidden")


def _array(name: str, given: Any) -> Reals | None:
    if given is None:
        return None
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be an array of numbers") from None
    bad = ~(array < np.inf)
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        raise ModelError(f"{name} must be numbers or -inf; {name}[{', '.join(map(str, where))}] is {array[where]}")
    return array


def check_labels(s: Structure, lead: tuple[int, ...], truth: Any) -> NDArray[np.int32]:
    """Labelings of a batch, a row each."""
    labels = np.asarray(truth)
    if labels.shape != (*lead, s.n_variables):
        raise ModelError(f"labels must have the shape {(*lead, s.n_variables)}, not {labels.shape}")
    if labels.size and labels.dtype.kind not in "iu":
        raise ModelError(f"labels must be whole numbers, not {labels.dtype}")
    rows = labels.reshape(-1, s.n_variables)
    wrong = (rows < 0) | (rows >= s.cards)
    if wrong.any():
        item, v = np.argwhere(wrong)[0].tolist()
        raise ModelError(f"item {item}: variable {v} has {s.cards[v]} labels, not one with the number {rows[item, v]}")
    return rows.astype(np.int32)
