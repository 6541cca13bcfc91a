"""Rounds: the loop. All parts work under their multipliers, the bounds are added up, the multipliers take a step.

It is a generator that asks a crew of parts and is told their answers; where the parts live, and how many work at a
time, changes nothing. `kept` is the round to go back to after a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from math import fsum, inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.solver import is_proof, relative_gap
from fginfer.errors import ModelError, UnwritableError
from fginfer.parts.crew import Ask
from fginfer.parts.join import merged, relabel
from fginfer.parts.keep import Keeper, Kept
from fginfer.parts.part import PartFacts, Report
from fginfer.parts.rules import RULES
from fginfer.parts.seams import Seams, assemble, numbers_of

Script = Generator[Ask | None, dict[int, Any], str]


@dataclass
class Target:
    """When the rounds may end."""

    gap: float
    cutoff: float
    most_rounds: int | None
    seed: int
    sweeps: int  # iterations of a part in a round
    floor: Callable[[float], float] | None = None  # the largest score that can occur up to a bound
    proves: bool = False  # whether parts are solved to their optimum once rounds have converged
    score: Callable[[NDArray[np.int32]], float] | None = None  # a labeling of the whole, as one process adds


@dataclass
class Found:
    """What is known of the whole."""

    bound: float = inf
    score: float = -inf
    labels: list[NDArray[Any]] | None = None  # labels of each part
    by: str = "parts"

    def or_better(self, other: Found) -> Found:
        """The better of both bounds, and of both labelings."""
        better = other if other.score > self.score else self
        return replace(better, bound=min(self.bound, other.bound))


class Window(NamedTuple):
    """Some rounds over which progress is judged."""

    bound: float = inf  # at its beginning
    at: int = 0  # round
    kick: float = RULES.kick_first  # part of the gap: what the next step along a subgradient is to gain
    last_kick: float = inf  # the bound before the last one


class Rounds:
    """The loop over a crew of so many parts."""

    def __init__(self, n_parts: int, target: Target, keeper: Keeper | None, clock: Callable[[], float]) -> None:
        self.n_parts, self.target, self._keeper, self._clock = n_parts, target, keeper, clock
        # What the rounds of this course have found, which steers them; and what is known beside it: after a fault the
        # course is set back, so that it goes as it would have gone, but nothing that was found is lost.
        self.found, self._known, self._offered = Found(), Found(), Found()
        self.events: list[tuple[float, float, float, int]] = []
        self.facts: list[PartFacts] = []
        self.unit = 0.0
        self.work_seconds = 0.0
        self.border_bytes = 0
        self._has_begun = False
        self._begin_anew()
        self.seams: Seams

    def _begin_anew(self) -> None:
        self.number, self._join_at, self.window, self._kick_is_due = 0, RULES.join_first, Window(), False
        self._width, self._pace, self._misses = RULES.strip_width, 0.0, 0

    # -- the script --------------------------------------------------------------------------------------------

    def script(self) -> Script:
        """From the beginning, or from the round that is kept."""
        if not self.facts:
            answers = yield self._all("facts")
            self._learn([answers[p] for p in range(self.n_parts)])
        kept = None if self._keeper is None else self._keeper.kept
        if kept is not None:
            yield from self._go_back(kept)
        elif self._has_begun:  # parts that were not lost know what they did; all begin anew together
            yield self._all("restart")
            self.seams = Seams(self.facts)
            self._set_back(self._offered)
            self._begin_anew()
        status: str | None = None
        self._has_begun = True
        while status is None:
            status = yield from (self._proof() if self._pace > 0 else self._round())
            if status is None and self._keeper is not None and self._keeper.is_due(self.number):
                yield from self._keep()
            yield None
        return status

    def _round(self) -> Generator[Ask | None, dict[int, Any], str | None]:
        """One round; the status that ends the rounds."""
        reports = yield Ask("round", {p: (self.seams.multipliers(p), self.target.sweeps) for p in self._parts})
        beliefs = self._take([reports[p] for p in self._parts])
        labels = [reports[p].labels for p in self._parts]
        status = self.proof() or self._stall()
        if self.found.bound > -inf and (self.number >= self._join_at or status or self._is_last):
            self._join_at = max(self.number + 1, int(self.number * RULES.join_growth))
            yield from self._join(labels)
            status = self.proof() or status
        if status == "converged" and self.target.proves:
            self._pace, self._misses = RULES.proof_pace, 0
            return None
        self.seams.step(beliefs, self.number)
        if self._kick_is_due:
            self._kick(labels)
        return status

    def _proof(self) -> Generator[Ask | None, dict[int, Any], str | None]:
        """After the rounds: every part is solved for itself, and multipliers take steps along what parts disagree on.
        The bound is then that of the best labelings of parts, not of their relaxations."""
        before, work = self.found.bound, RULES.proof_iterations
        given = {p: (self.seams.multipliers(p), work, self.target.seed) for p in self._parts}
        reports = yield Ask("prove", given)
        self._take([reports[p] for p in self._parts])
        here = fsum(reports[p].bound for p in self._parts) if self.found.bound > -inf else -inf
        labels = [reports[p].labels for p in self._parts]
        if self.found.bound > -inf:
            yield from self._join(labels)
        gap = self.found.bound - self.found.score
        if status := self.proof():
            return status
        self._misses = 0 if before - self.found.bound > RULES.kick_gain * gap else self._misses + 1
        if self._misses >= RULES.proof_patience:
            self._pace, self._misses = self._pace * RULES.proof_less, 0
        if self._pace < RULES.proof_least or not here - self.found.score < inf:
            return "converged"
        differ = self.seams.kick(labels, self._pace * (here - self.found.score))
        return None if differ else "converged"

    @property
    def _parts(self) -> range:
        return range(self.n_parts)

    @property
    def _is_last(self) -> bool:
        return self.target.most_rounds is not None and self.number >= self.target.most_rounds

    def _all(self, what: str) -> Ask:
        return Ask(what, {p: () for p in self._parts})

    def _learn(self, facts: list[PartFacts]) -> None:
        self.seams = Seams(facts)
        self.facts = facts
        self.unit = min((f.unit for f in facts if f.unit > 0), default=0.0)

    # -- bounds ------------------------------------------------------------------------------------------------

    def _take(self, reports: list[Report]) -> list[NDArray[np.float64]]:
        """The reports of one round, all of them under its multipliers."""
        self.number += 1
        self.work_seconds += sum(r.seconds for r in reports)
        self.border_bytes += sum(16 * len(r.beliefs) for r in reports)
        bounds = [r.bound for r in reports]
        total = -inf if -inf in bounds else nextafter(fsum(bounds), inf)
        if total < self.found.bound:
            self.found.bound = self._no_more_than(total)
            self._event()
        return [r.beliefs for r in reports]

    def _no_more_than(self, bound: float) -> float:
        """Where scores are counted in steps, those between two of them do not occur."""
        best = max(self.found.score, self.target.cutoff)
        if self.target.floor is None or not 0 <= bound - best < self.unit:
            return bound
        return max(self.target.floor(bound), self.found.score)

    def _event(self) -> None:
        best = self.best
        if not self.events or self.events[-1][1:3] != (best.score, best.bound):
            self.events.append((self._clock(), best.score, best.bound, self.number))

    def proof(self) -> str | None:
        """The status that score and bound prove."""
        score, bound, target = self.found.score, self.found.bound, self.target
        if bound == -inf or is_proof(bound, score, target.cutoff, self.unit):
            return "infeasible" if bound == -inf or not score > target.cutoff else "optimal"
        if score > target.cutoff and relative_gap(score, bound, self.unit) <= target.gap:
            return "gap_reached"
        return None

    def _stall(self) -> str | None:
        """At the end of a window: whether there is no more to gain, and whether a kick is due."""
        w, bound, scale = self.window, self.found.bound, max(abs(self.found.bound), self.unit)
        if self.number - w.at < RULES.stall_rounds:
            return None
        gain = w.bound - bound
        self.window = Window(bound, self.number, w.kick, w.last_kick)
        if self.found.score == -inf or w.kick < RULES.kick_least or not len(self.seams.variables):
            return "converged" if gain < RULES.stall_gain * RULES.stall_rounds * scale else None
        if gain < RULES.kick_gain * (bound - self.found.score):
            self._kick_is_due = True
        return None

    def _kick(self, labels: list[NDArray[np.int32]]) -> None:
        """Steps of less and less, as long as they help; after the last one rounds go on until nothing is gained."""
        self._kick_is_due = False
        w, gap = self.window, self.found.bound - self.found.score
        self.seams.kick(labels, w.kick * gap)
        helped = w.last_kick - self.found.bound >= RULES.kick_gain * gap
        less = w.kick if helped else w.kick * RULES.kick_less
        self.window = Window(w.bound, w.at, less, self.found.bound)

    # -- labels ------------------------------------------------------------------------------------------------

    def _join(self, border: list[NDArray[np.int32]]) -> Script:
        """One labeling out of the parts' own, chosen anew around the separators."""
        agreed = self.seams.agree(border)
        size = self._width, RULES.strip_entries // self.n_parts
        pieces = yield Ask("strip", {p: (agreed[p], *size) for p in self._parts})
        numbers, arrays, labels = merged([pieces[p] for p in self._parts])
        chosen = labels
        if len(numbers):
            for step in relabel(arrays, labels, self.target.seed):
                if step is None:
                    yield None
                else:
                    chosen = step
        at = {p: np.searchsorted(numbers, pieces[p].variables) for p in self._parts}
        scores = yield Ask("settle", {p: (chosen[at[p]], *size) for p in self._parts})
        total = fsum(scores.values()) if -inf not in scores.values() else -inf
        # What is left to choose may have no allowed labeling, given labels farther away: next time more is chosen anew.
        self._width = RULES.strip_width if total > -inf else min(self._width * RULES.strip_wider, RULES.strip_entries)
        if total > max(self.found.score, self.target.cutoff):
            committed = yield self._all("commit")
            self._improve(total, [committed[p] for p in self._parts], "parts")
        return ""

    def _improve(self, score: float, labels: list[NDArray[Any]], by: str) -> None:
        if self.target.score is not None:
            score = self.target.score(assemble(self.facts, self.seams.n_variables, labels))
            if not score > max(self.found.score, self.target.cutoff):
                return
        self.found.score, self.found.labels, self.found.by = score, labels, by
        self.found.bound = self._no_more_than(self.found.bound)
        self._event()

    def labels(self) -> NDArray[np.int32] | None:
        """The best labeling of the whole."""
        labels = self.best.labels
        return None if labels is None else assemble(self.facts, self.seams.n_variables, labels)

    @property
    def best(self) -> Found:
        """All that is known of the whole."""
        return self.found.or_better(self._known)

    def offer(self, labels: NDArray[np.int32]) -> Script:
        """A labeling from elsewhere: kept if it is better."""
        if len(labels) != self.seams.n_variables:
            raise ModelError(f"a labeling of {self.seams.n_variables} variables is needed, not of {len(labels)}")
        parts = [labels[numbers_of(f)] for f in self.facts]
        scores = yield Ask("score_of", {p: (parts[p],) for p in self._parts})
        total = fsum(scores.values()) if -inf not in scores.values() else -inf
        if total > max(self.found.score, self.target.cutoff):
            self._improve(total, list(parts), "offer")
            self._offered = replace(self.found, bound=inf)
        return ""

    # -- faults ------------------------------------------------------------------------------------------------

    def _keep(self) -> Script:
        """After the step, so that the round to come is the first that is done again. A full disk costs no more than
        the checkpoint."""
        assert self._keeper is not None
        try:
            yield from self._keep_all(self._keeper)
        except UnwritableError as error:
            self._keeper.give_up(self.number, self.n_parts, error)
        return ""

    def _keep_all(self, keeper: Keeper) -> Script:
        for p in self._parts:
            answer = yield Ask("pack", {p: (self.seams.multipliers(p),)})
            keeper.put(self.number, p, answer[p])
        found, w = self.found, self.window
        keeper.seal(
            Kept(
                self.number,
                self._join_at,
                w.at,
                w.bound,
                w.kick,
                w.last_kick,
                self._pace,
                self._width,
                self._misses,
                found.bound,
                found.score,
                self.seams.counts,
                found.labels,
            )
        )
        return ""

    def _go_back(self, kept: Kept) -> Script:
        assert self._keeper is not None
        self.seams.counts = kept.counts
        for p in self._parts:
            yield Ask("restore", {p: (self.seams.multipliers(p), self._keeper.state(p, self.facts[p].n_state))})
        self.number, self._join_at, self._width = kept.number, kept.join_at, kept.width
        self._pace, self._misses = kept.pace, kept.misses
        self.window, self._kick_is_due = Window(kept.window_bound, kept.window_at, kept.kick, kept.last_kick), False
        self._set_back(Found(kept.bound, kept.score, kept.labels).or_better(self._offered))
        self._event()
        return ""

    def _set_back(self, found: Found) -> None:
        self._known, self.found = self.best, replace(found)
