"""method="auto": the best labeling that the time limit can buy, and how far it can be from optimal.

What it tries, and in which order, is in policy.py: presolve takes a model apart, every part gets a team of members,
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
from fginfer.engine import FREE_SECONDS, Settings, seconds_to_fill
from fginfer.graph import FactorGraph
from fginfer.options import check_number, unknown_option
from fginfer.portfolio.given import Given
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.policy import Policy
from fginfer.portfolio.run import Options
from fginfer.portfolio.workers import Workers
from fginfer.result import Progress, Result, Status, known


def _read_options(given: dict[str, object]) -> Options:
    unknown = sorted(set(given) - {"memory", "presolve"})
    if unknown:
        raise unknown_option(unknown[0], "auto", ("memory", "presolve"))
    memory = given.get("memory", Options.memory)
    check_number("memory", memory, "a number of bytes")
    return Options(bool(given.get("presolve", Options.presolve)), float(cast(float, memory)))


class AutoEngine:
    """The portfolio behind method="auto". Options: presolve (True), memory (bytes that elimination may use)."""

    def __init__(self, graph: FactorGraph, settings: Settings) -> None:
        self._options = _read_options(settings.options)
        self.settings = settings
        self._workers = Workers(settings.threads)
        self._begin(graph, settings.start_time)

    def _begin(self, graph: FactorGraph, start: float) -> None:
        self._given = Given(graph)
        if start < 0 or start != self.settings.start_time:
            self.settings = replace(self.settings, start_time=start if start >= 0 else clock.now())
        self._workers.deadline = inf
        self.policy = Policy(self._given, self.settings, self._options, self._workers)

    def run(self, seconds: float, iterations: int) -> str:
        policy, workers = self.policy, self._workers
        workers.deadline = clock.now() + seconds if seconds >= 0 else inf
        target = policy.iterations + iterations if iterations >= 0 else None
        while policy.status == "running" and (target is None or policy.iterations < target):
            policy.step()
            if clock.now() >= workers.deadline:
                break
        if policy.status != "running":
            policy.cancel()  # presolve may be under way, and nobody will ask for it
        return policy.status

    def close(self) -> None:
        """What is under way on other threads ends soon."""
        self.policy.cancel()
        self._workers.close()

    def __del__(self) -> None:
        if hasattr(self, "policy"):
            self.close()

    # -- what is known -----------------------------------------------------------------------------------------

    def now(self) -> Incumbent:
        """What is known at this moment, in the middle of a round too. Looking changes nothing."""
        policy = self.policy
        if policy.status != "running":
            return policy.known
        now = policy.known.copy()
        policy.gather(now, fully=True)
        policy.known.points = list(now.points)  # events are handed out once
        return now

    def seconds_to_end(self) -> float:
        """About what the end of a run takes: labels and bound where there are none, and freeing."""
        policy, score, bound = self.policy, self.policy.known.score, self.policy.known.bound
        if policy.division is not None:
            _, found, of_parts = policy.division.best(labels=False)
            score, bound = max(score, found), min(bound, of_parts)
        return seconds_to_fill(self._given.model, score, bound) + FREE_SECONDS * policy.memory

    def progress(self) -> Progress:
        """Without the labels, which would have to be copied, expanded and scored each time."""
        policy, given, best = self.policy, self._given, self.policy.known
        score, bound = best.score, best.bound
        if policy.status == "running" and policy.division is not None:
            _, found, of_parts = policy.division.best(labels=False)
            score = max(score, found)
            bound = max(score, min(bound, of_parts))
        score = given.score(score) if score > best.cutoff else -inf
        said = known(score), known(given.bound(bound))
        return Progress(best.seconds(), policy.iterations, *said, unit=given.score(best.unit))

    def result(self) -> Result:
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
            unit=given.score(now.unit),
        )

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        self.policy.known.improve(labels)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # presolve changes the model that messages are about

    def update(self, graph: FactorGraph) -> None:
        labels = self.now().labels
        self.policy.cancel()  # what is still under way is about the old numbers
        self._begin(graph, clock.now())
        if labels is not None:
            self.offer(labels)
