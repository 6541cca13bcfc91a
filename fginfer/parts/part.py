"""Part: one part of a model at work. It knows nothing of the others, nor of where it lives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.arrays import ModelArrays, begins
from fginfer.parts.hands import Hand, Prover, hand_for
from fginfer.parts.shard import Shard, runs_of, subset

Reals = NDArray[np.float64]
Labels = NDArray[np.int32]


@dataclass(frozen=True)
class PartFacts:
    """What a part says of itself before any work."""

    border: NDArray[np.int64]  # numbers of the variables that others may have, ascending
    cards: NDArray[np.int32]  # label counts of these
    forbidden: NDArray[np.bool_]  # which of their labels
    degree: NDArray[np.int32]  # how many factors of the part they have
    interior: NDArray[np.int64]  # the numbers of the others, as rows (first, how many)
    n_factors: int
    table_entries: int
    max_labels: int
    largest: float  # score
    unit: float
    n_state: int  # numbers of a state


@dataclass(frozen=True)
class Report:
    """A round: the bound is valid for the multipliers that the round was given. Beliefs are of the border's labels."""

    bound: float
    beliefs: Reals
    labels: Labels  # labels of the border, in the best labeling of the round
    seconds: float  # seconds of work


@dataclass(frozen=True)
class Piece:
    """What of a part's strip is left to choose when the labels around it are fixed."""

    variables: NDArray[np.int64]
    labels: Labels
    arrays: ModelArrays


@dataclass(frozen=True)
class Sleep:
    """What of a part that is put away is not in its shard."""

    multipliers: Reals
    state: Path | None  # a file; None: it has not worked yet
    labels: NDArray[Any] | None


class Part:
    """A solver on a shard. Rounds take multipliers of the border's labels and give a bound and beliefs."""

    def __init__(self, shard: Shard, options: dict[str, Any], asleep: Sleep | None = None) -> None:
        self._model = shard.model()
        self._variables, self.n_border, self._slack = shard.variables, shard.n_border, shard.slack
        self._options, self._asleep = options, asleep
        self._made: Hand | None = None  # made when it is first needed
        self._prover: Prover | None = None
        self._cards = self._model.cards
        self._begin = begins(self._cards[: self.n_border])
        arrays = ModelArrays.of_model(self._model)
        assert arrays.unary is not None
        self._own_unary = arrays.unary[: int(self._begin[-1])].copy()
        self._multipliers = np.zeros(len(self._own_unary)) if asleep is None else asleep.multipliers
        self._labels: Labels | None = None
        if asleep is not None and asleep.labels is not None:
            self._labels = asleep.labels.astype(np.int32)
        self._strip: _Strip | None = None
        self._strip_size = 0, 0
        self._at_work = False  # in the middle of a round
        self._error = 0.0  # what rounding took from the unary scores of this round

    @property
    def _hand(self) -> Hand:
        if self._made is None:
            self._made = hand_for(self._model, self.n_border, self._options)
            if self._asleep is not None and self._asleep.state is not None:
                self._made.set_state(self._moved(self._asleep.multipliers), np.load(self._asleep.state))
        return self._made

    def memory(self) -> int:
        """Bytes that the part takes, about."""
        return int(self._model.memory + self._hand.memory + 8 * self._model.n_labels + 8 * len(self._cards))

    def sleep(self, path: Path) -> Sleep:
        """Writes what it needs to go on later."""
        labels = None if self._labels is None else self.commit()
        state = None if self._asleep is None else self._asleep.state
        if self._made is not None and self._made.has_worked:
            np.save(path, self._made.state())
            state = path
        return Sleep(self._multipliers, state, labels)

    def facts(self) -> PartFacts:
        a = ModelArrays.of_model(self._model)
        finite = np.abs(a.values[np.isfinite(a.values)]).max(initial=0.0)
        if a.params is not None:
            finite = max(finite, float(np.abs(a.params[np.isfinite(a.params)]).max(initial=0.0)))
        if a.factor_weight is not None:
            finite *= float(a.factor_weight.max(initial=0.0))
        assert a.unary is not None
        unary = np.abs(a.unary[np.isfinite(a.unary)]).max(initial=0.0)
        return PartFacts(
            self._variables[: self.n_border],
            self._cards[: self.n_border].copy(),
            self._own_unary == -inf,
            np.bincount(a.vars[a.vars < self.n_border], minlength=self.n_border).astype(np.int32),
            runs_of(self._variables[self.n_border :]),
            a.n_factors,
            len(a.unary) + self._model.entries,
            int(self._cards.max(initial=0)),
            float(max(finite, unary)),
            self._model.unit,
            self._hand.state_size,
        )

    # -- rounds ------------------------------------------------------------------------------------------------

    def round(self, multipliers: Reals, sweeps: int, seconds: float = -1.0) -> Report | None:
        """So many iterations under these multipliers; None where the time was over before: to be called again."""
        began = clock.now()
        if not self._at_work:
            self._hand.begin(self._moved(multipliers), sweeps)
        self._at_work = not self._hand.run(seconds)
        if self._at_work:
            return None
        labels = self._take_labels(self._hand.labels())
        return Report(
            self._raised(self._hand.bound()),
            self._hand.beliefs(),
            labels[: self.n_border].copy(),
            clock.now() - began,
        )

    def prove(self, multipliers: Reals, iterations: int, seed: int, seconds: float = -1.0) -> Report | None:
        """So many iterations of auto under these multipliers, as `round`; there are no beliefs."""
        began = clock.now()
        if self._prover is None:
            threads = self._options.get("threads", 1)
            self._prover = Prover(self._model, self._moved(multipliers), self.n_border, iterations, seed, threads)
        if not self._prover.run(seconds):
            return None
        bound, found = self._prover.found()
        self._prover = None
        labels = self._take_labels(found)
        return Report(self._raised(bound), np.zeros(0), labels[: self.n_border].copy(), clock.now() - began)

    def _raised(self, bound: float) -> float:
        return nextafter(bound + self._error, inf) if bound > -inf and self._error > 0 else bound

    def _moved(self, multipliers: Reals) -> Reals:
        """Unary scores plus multipliers. What rounding takes from a sum, the bound must not lose."""
        self._multipliers = multipliers
        given, known = self._own_unary, self._own_unary > -inf
        moved = given + multipliers
        with np.errstate(invalid="ignore"):
            part = moved - given
            lost = np.where(known, (given - (moved - part)) + (multipliers - part), 0.0)
        self._error = self._slack
        if len(lost) and lost.any():
            self._error += float(np.maximum.reduceat(lost, self._begin[:-1]).clip(0.0).sum()) * (1 + 2.0**-20)
        return moved

    # -- labels ------------------------------------------------------------------------------------------------

    def _take_labels(self, found: Labels | None) -> Labels:
        if found is not None:
            self._labels = found
        elif self._labels is None:
            self._labels = self._model.unary_labels()
        return self._labels

    def strip(self, labels: Labels, width: int, most: int) -> Piece:
        """Takes these labels for the border; then what can be chosen anew near to it."""
        assert self._labels is not None
        self._labels[: self.n_border] = labels
        return self._near(width, most).piece(self._variables, self._labels)

    def settle(self, labels: Labels, width: int, most: int) -> float:
        """Takes these labels for the strip. The score of the part, without multipliers."""
        assert self._labels is not None
        self._labels[self._near(width, most).inside] = labels
        return self._model.score(self._labels)

    def _near(self, width: int, most: int) -> _Strip:
        if self._strip is None or self._strip_size != (width, most):
            self._strip, self._strip_size = _Strip(self._model, self.n_border, width, most), (width, most)
        return self._strip

    def score_of(self, labels: Labels) -> float:
        """The score of a labeling of the part's variables."""
        return self._model.score(np.ascontiguousarray(labels, np.int32))

    def commit(self) -> NDArray[Any]:
        """The labels of all variables of the part, in as few bytes as they need."""
        assert self._labels is not None
        most = int(self._cards.max(initial=1))
        return self._labels.astype(np.uint8 if most <= 1 << 8 else np.uint16 if most <= 1 << 16 else np.int32)

    # -- faults ------------------------------------------------------------------------------------------------

    def pack(self, multipliers: Reals) -> Reals:
        """What another Part of the same shard needs to go on as this one will, under the multipliers to come."""
        state = self._hand.state()
        self._hand.set_state(self._moved(multipliers), state)  # what it holds beside, it makes again as the other will
        return state

    def restart(self) -> None:
        """Forgets its work: it is as it was made."""
        self._made, self._prover, self._asleep, self._labels = None, None, None, None
        self._multipliers = np.zeros(len(self._own_unary))
        self._at_work, self._error = False, 0.0

    def restore(self, multipliers: Reals, state: Reals) -> None:
        """Goes on from a state, under the multipliers it was packed with."""
        self._at_work, self._asleep, self._prover = False, None, None
        self._hand.set_state(self._moved(multipliers), state)


class _Strip:
    """The variables near to the border, and the factors that have one of them."""

    def __init__(self, model: Any, n_border: int, width: int, most: int) -> None:
        a = ModelArrays.of_model(model)
        begin = a.factor_begin()
        near = np.zeros(len(a.cards), bool)
        near[:n_border] = True
        touched = _touching(a, begin, near)
        for _ in range(width):
            wider = near.copy()
            wider[_scopes(a, begin, touched)] = True
            if a.cards[wider].sum(dtype=np.int64) > most or (wider == near).all():
                break
            near, touched = wider, _touching(a, begin, wider)
        self.inside = np.flatnonzero(near)
        seen = near.copy()
        seen[_scopes(a, begin, touched)] = True
        around = np.flatnonzero(seen & ~near)
        variables = np.concatenate([self.inside, around])
        place = np.zeros(len(a.cards), np.int32)
        place[variables] = np.arange(len(variables), dtype=np.int32)
        part = subset(a, touched, variables, place)
        rows = np.repeat(near[variables], a.cards[variables])
        assert a.unary is not None
        unary = np.zeros(len(rows))
        unary[rows] = a.unary[np.repeat(near, a.cards)]
        part.unary = unary
        self._model, self._around = part.build(), around
        self._fixed = np.arange(len(self.inside), len(variables), dtype=np.int32)

    def piece(self, variables: NDArray[np.int64], labels: Labels) -> Piece:
        fixed = np.ascontiguousarray(labels[self._around], np.int32)
        left = ModelArrays.of_model(self._model.condition(self._fixed, fixed).plain())
        left = replace(left, constant=0.0, leftover_var=np.zeros(0, np.int32), leftover=np.zeros(0))
        return Piece(variables[self.inside], labels[self.inside], left)


def _touching(a: ModelArrays, begin: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The factors that have a chosen variable."""
    if a.n_factors == 0:
        return np.zeros(0, np.int64)
    if a.var_begin is None:
        return np.flatnonzero(chosen[a.vars].reshape(-1, 2).any(1))
    return np.flatnonzero(np.logical_or.reduceat(chosen[a.vars], begin[:-1]))


def _scopes(a: ModelArrays, begin: NDArray[np.int64], factors: NDArray[np.int64]) -> NDArray[np.int32]:
    if a.var_begin is None:
        return a.vars.reshape(-1, 2)[factors].reshape(-1)
    chosen = np.zeros(a.n_factors, bool)
    chosen[factors] = True
    return np.asarray(a.vars[np.repeat(chosen, np.diff(begin))])
