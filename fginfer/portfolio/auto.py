"""method="auto": the best labeling that the time limit can buy, and how far it can be from optimal.

What it tries, and in which order, is in stages.py: presolve takes a model apart, every part gets a team of members,
and members work in rounds whose length is counted in table entries. Nothing is decided by the clock, which only says
when to stop.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.rows import options_of, readers_of
from fginfer.engine import FREE_SECONDS, Settings, seconds_to_fill
from fginfer.graph import FactorGraph
from fginfer.journal import Changes
from fginfer.lower import Lowered
from fginfer.options import check_flag, check_number, unknown_option
from fginfer.portfolio.again import Again
from fginfer.portfolio.following import after_changes, after_run
from fginfer.portfolio.known import Given, Incumbent
from fginfer.portfolio.ledger import terms_of
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.run import Options
from fginfer.portfolio.stages import Policy
from fginfer.portfolio.threads import Threads
from fginfer.result import PROOFS, Progress, Result, Status, known


def _read_options(given: dict[str, object]) -> Options:
    known = options_of("auto")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise unknown_option(unknown[0], "auto", sorted(known), readers_of(unknown[0]))
    memory = given.get("memory", known["memory"].default)
    check_number("memory", memory, "a number of bytes, 0 or more", least=0)
    presolve = given.get("presolve", known["presolve"].default)
    check_flag("presolve", presolve)
    return Options(bool(presolve), float(cast(float, memory)))


class AutoEngine:
    """The portfolio behind method="auto". Options: presolve (True), memory (bytes that elimination may use),
    rules (name -> number, rows of rules.py that are changed)."""

    def __init__(self, graph: FactorGraph, settings: Settings) -> None:
        self._options = _read_options(settings.options)
        self._rules = Rules.changed(settings.options.get("rules", {}))
        self.settings = settings
        self._threads = Threads(settings.threads)
        self._again: Again | None = None  # what follows changes; at work if `_is_again`
        self._is_again = False
        self._misses, self._skips = 0, 0  # changes in a row that were too large for it; changes it need not look at
        self._begin(graph.snapshot(), settings.start_time, graph.origin)

    def _begin(self, model: Model, start: float, origin: Lowered | None = None) -> None:
        self._given, self._is_again = Given(model), False
        if start < 0 or start != self.settings.start_time:
            self.settings = replace(self.settings, start_time=start if start >= 0 else clock.now())
        self._threads.deadline = inf
        terms = terms_of(self.settings, self._rules)
        self.policy = Policy(self._given, terms, self._options, self._threads, origin)

    def run(self, seconds: float, iterations: int) -> str:
        if self._is_again and self._again is not None:
            seconds = self._run_again(self._again, seconds)
            if self._is_again:
                return self._again.status
        policy, threads = self.policy, self._threads
        threads.deadline = clock.now() + seconds if seconds >= 0 else inf
        target = policy.iterations + iterations if iterations >= 0 else None
        while policy.status == "running" and (target is None or policy.iterations < target):
            policy.step()
            if clock.now() >= threads.deadline:
                break
        if policy.status != "running":
            policy.cancel()  # presolve may be under way, and nobody will ask for it
        return policy.status

    def _run_again(self, again: Again, seconds: float) -> float:
        """The keeper at work; where it is stuck the portfolio takes over. Returns the seconds that are left."""
        began = clock.now()
        again.run(seconds)
        if again.is_stuck:
            self._misses += 1
            self._skips = 2**self._misses - 1
            self._leave(again)
        return max(0.0, seconds - (clock.now() - began)) if seconds >= 0 else seconds

    def _leave(self, again: Again) -> None:
        """The portfolio goes on from the labels of the keeper."""
        labels, self._again = again.labels(), None
        self._begin(again.model(), self.settings.start_time)
        if labels is not None:
            self.policy.known.improve(labels, by="offer")

    def close(self) -> None:
        """What is under way on other threads ends soon."""
        self.policy.cancel()
        self._threads.close()

    def __del__(self) -> None:
        if hasattr(self, "policy"):
            self.close()

    # -- what is known -----------------------------------------------------------------------------------------

    def now(self) -> Incumbent:
        """What is known at this moment, in the middle of a round too. Looking changes nothing."""
        policy = self.policy
        if self._is_again and self._again is not None:
            policy.known.labels = self._again.labels()
            return policy.known
        if policy.status != "running":
            return policy.known
        now = policy.known.copy()
        policy.gather(now, fully=True)
        policy.known.points = list(now.points)  # events are handed out once
        return now

    def seconds_to_end(self) -> float:
        """About what the end of a run takes: labels and bound where there are none, and freeing."""
        if self._is_again:
            return 0.0
        policy, score, bound = self.policy, self.policy.known.score, self.policy.known.bound
        if policy.division is not None:
            _, found, of_parts = policy.division.best(labels=False)
            score, bound = max(score, found), min(bound, of_parts)
        return seconds_to_fill(self._given.model, score, bound) + FREE_SECONDS * policy.memory

    def progress(self) -> Progress:
        """Without the labels, which would have to be copied, expanded and scored each time."""
        if self._is_again and self._again is not None:
            return self._again.progress()
        policy, given, best = self.policy, self._given, self.policy.known
        score, bound, finder = best.score, best.bound, best.found_by
        if policy.status == "running" and policy.division is not None:
            _, found, of_parts = policy.division.best(labels=False)
            finder = policy.division.credits()[0] if found > score else finder
            score = max(score, found)
            bound = max(score, min(bound, of_parts))
        score = given.score(score) if score > best.cutoff else -inf
        said = known(score), known(given.bound(bound))
        return Progress(best.seconds(), policy.iterations, *said, unit=given.score(best.unit), found_by=finder)

    def result(self) -> Result:
        if self._is_again and self._again is not None:
            return self._again.result()
        policy, given, now = self.policy, self._given, self.now()
        if policy.status == "running":
            now.fill()
        bound = given.bound(now.bound)
        return Result(
            self.settings.method,
            cast(Status, policy.status),
            now.labels if now.wanted else None,
            given.best_score(now) if now.wanted else None,
            None if bound == inf else bound,
            policy.iterations,
            now.seconds(),
            policy.setup_seconds,
            self.settings.threads,
            self.settings.seed,
            given.trace(now),
            statistics=self._statistics(),
            unit=given.score(now.unit),
            found_by=now.found_by if now.wanted else None,
            proved_by=now.bound_by if policy.status in PROOFS else None,
        )

    def _statistics(self) -> dict[str, float]:
        """Rounds, parts, and what the ledger says."""
        policy = self.policy
        parts = 0 if policy.division is None else len(policy.division.parts)
        return {"rounds": float(policy.iterations), "parts": float(parts), **policy.ledger.statistics()}

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        if self._is_again and self._again is not None:
            if self._again.model().score(labels) <= self._again.score:
                return
            self._leave(self._again)
        self.policy.known.improve(labels, by="offer")

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # presolve changes the model that messages are about

    def update(self, graph: FactorGraph) -> None:
        labels = self.now().labels
        self.policy.cancel()  # what is still under way is about the old numbers
        self._again = None
        self._begin(graph.snapshot(), clock.now(), graph.origin)
        if labels is not None:
            self.offer(labels)

    def follow(self, graph: FactorGraph, changes: Changes) -> bool:
        """Takes what has changed in the graph, at a cost that follows the change; False: there is a new start to be
        made."""
        if self._skips > 0 and not self._is_again:
            self._skips -= 1
            return False
        start, again, self._again = clock.now(), self._again, None
        if self._is_again and again is not None:
            again = after_changes(again, self.settings, self._rules, changes)
        else:
            again = after_run(self.policy, self._given, self.settings, self._rules, changes)
        if again is None or not again.take(graph, changes, start):
            return False
        self.settings = replace(self.settings, start_time=start)
        self.policy.forget()
        self._again, self._is_again, self._misses = again, True, 0
        return True
