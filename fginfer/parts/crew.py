"""Crews: where parts live and who works on them. The loop asks a crew something of its parts, and waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, NamedTuple, Protocol

from fginfer.core import clock
from fginfer.crew import Crew as Threads
from fginfer.crew import Task
from fginfer.errors import FginferError
from fginfer.parts.part import Part, Sleep
from fginfer.parts.rules import RULES
from fginfer.parts.shard import Shard

SLICED = ("round", "prove")  # questions that take a time, after which they are asked again


class Ask(NamedTuple):
    """A method of Part, and its arguments for each of the parts that are asked."""

    what: str
    given: Mapping[int, tuple[Any, ...]]


class PartsLost(Exception):
    """Some parts are no more; the crew has made them anew, and none of them knows what it did before."""


class PartsCrew(Protocol):
    """begin hands out a question; wait returns the answers by part, or None where the time is over before.

    wait raises PartsLost after a fault, and what a part raises. invite does where parts move to those who came late; it
    is called right after a round was kept, so that nothing is done twice.
    """

    n_parts: int
    can_lose: bool  # whether parts can be lost, so that states have to be kept elsewhere

    def begin(self, ask: Ask) -> None: ...
    def wait(self, seconds: float) -> dict[int, Any] | None: ...
    def invite(self) -> None: ...
    def close(self) -> None: ...
    def statistics(self) -> dict[str, float]: ...


class SerialCrew:
    """All parts in this process, one after the other."""

    can_lose = False

    def __init__(self, n_parts: int, shard: Callable[[int], Shard], options: dict[str, Any]) -> None:
        self.n_parts, self._shard, self._options = n_parts, shard, options
        self._parts: dict[int, Part] = {}
        self._ask: Ask | None = None
        self._left: list[int] = []
        self._answers: dict[int, Any] = {}

    def part(self, number: int) -> Part:
        """A part, made when it is first asked."""
        if number not in self._parts:
            self._parts[number] = make_part(number, self._shard, self._options)
        return self._parts[number]

    def begin(self, ask: Ask) -> None:
        self._ask, self._left, self._answers = ask, sorted(ask.given), {}

    def wait(self, seconds: float) -> dict[int, Any] | None:
        deadline = clock.now() + seconds
        assert self._ask is not None
        while self._left:
            number = self._left[0]
            given = self._ask.given[number]
            if self._ask.what in SLICED:
                given = (*given, max(1e-3, deadline - clock.now()) if deadline < inf else -1.0)
            answer = getattr(self.part(number), self._ask.what)(*given)
            if answer is None and self._ask.what in SLICED:
                return None
            self._answers[number] = answer
            self._left.pop(0)
            if self._left and clock.now() >= deadline:
                return None
        return self._answers

    def invite(self) -> None:
        """Nobody comes late here."""

    def close(self) -> None:
        self._parts.clear()

    def statistics(self) -> dict[str, float]:
        return {}


class TurnsCrew(SerialCrew):
    """Parts that do not fit into memory together: some stay, the others take turns and sleep on disk meanwhile."""

    def __init__(self, n_parts: int, shard: Callable[[int], Shard], options: dict[str, Any], memory: float) -> None:
        super().__init__(n_parts, shard, options)
        self._memory, self._most, self._turns = memory, 0, 0
        self._asleep: dict[int, Sleep] = {}
        self._folder = Path(mkdtemp(prefix="fginfer-turns-"))

    def part(self, number: int) -> Part:
        if number in self._parts:
            return self._parts[number]
        if len(self._parts) >= max(1, self._most):
            last = next(reversed(self._parts))  # the others stay: all are asked in the same order each time
            self._asleep[last] = self._parts.pop(last).sleep(self._folder / f"{last}.npy")
        self._turns += 1
        self._parts[number] = part = make_part(number, self._shard, self._options, self._asleep.get(number))
        if self._most == 0:
            self._most = max(1, int(self._memory / max(1, part.memory())))
        return part

    def close(self) -> None:
        super().close()
        rmtree(self._folder, ignore_errors=True)

    def statistics(self) -> dict[str, float]:
        return {"turns": float(self._turns), "parts_in_memory": float(self._most)}


class ThreadCrew:
    """All parts in this process, several at a time."""

    can_lose = False

    def __init__(self, n_parts: int, shard: Callable[[int], Shard], options: dict[str, Any], threads: int) -> None:
        self.n_parts, self._shard, self._options = n_parts, shard, options
        self._threads = Threads(min(threads, n_parts))
        self._parts: dict[int, Part] = {}
        self._tasks: dict[int, Task[Any]] = {}
        self._stop = False

    def begin(self, ask: Ask) -> None:
        self._tasks = {p: self._threads.submit(self._job(p, ask)) for p in sorted(ask.given)}

    def _job(self, number: int, ask: Ask) -> Callable[[], Any]:
        def job() -> Any:
            if self._stop:
                return None
            if number not in self._parts:
                self._parts[number] = make_part(number, self._shard, self._options)
            work = getattr(self._parts[number], ask.what)
            if ask.what not in SLICED:
                return work(*ask.given[number])
            answer = None
            while answer is None and not self._stop:
                answer = work(*ask.given[number], RULES.slice_seconds)
            return answer

        return job

    def wait(self, seconds: float) -> dict[int, Any] | None:
        deadline = clock.now() + seconds
        for task in self._tasks.values():
            if not task.wait(max(0.0, deadline - clock.now()) if deadline < inf else None):
                return None
        return {p: task.result() for p, task in self._tasks.items()}

    def invite(self) -> None:
        """Nobody comes late here."""

    def close(self) -> None:
        self._stop = True
        for task in self._tasks.values():
            task.wait()
        self._threads.close()
        self._parts.clear()

    def statistics(self) -> dict[str, float]:
        return {}


def make_part(number: int, shard: Callable[[int], Shard], options: dict[str, Any], asleep: Sleep | None = None) -> Part:
    """A part from its shard; an error says which part it was."""
    try:
        return Part(shard(number), options, asleep)
    except FginferError as error:
        error.args = (f"part {number}: {error.args[0]}", *error.args[1:])
        raise


def available_threads(threads: int) -> int:
    """No more than there are cores: parts that wait for a core gain nothing."""
    return max(1, min(threads, os.cpu_count() or 1))
