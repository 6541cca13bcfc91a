"""Threads: those of a run, and the deadline that all of its work looks at."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from math import inf
from typing import Protocol, TypeVar

from fginfer.core import clock
from fginfer.crew import Crew, Task
from fginfer.portfolio.worker import Worker

T = TypeVar("T")


class Busy(Protocol):
    """A part with members that owe work."""

    @property
    def busy(self) -> list[Worker]: ...
    def work_off(self, deadline: float) -> None: ...


class Threads:
    """Threads that are made when they are first needed: tiny models never need them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.deadline = inf  # the end of the slice under way
        self.at_once = False  # jobs are so short that nobody minds to wait for them
        self._crew: Crew | None = None
        self._under_way: set[object] = set()  # jobs
        self._wide: list[Worker] = []  # who uses all threads, unless jobs do

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.deadline - clock.now())

    def submit(self, job: Callable[[], T]) -> Task[T]:
        """Begins a job on another thread."""
        ticket = object()

        def counted() -> T:
            try:
                return job()
            finally:
                self._under_way.discard(ticket)
                self._share_cores()

        self._under_way.add(ticket)
        self._share_cores()
        return self._threads.submit(counted)

    def make_room(self, members: Sequence[Worker]) -> None:
        """Those that have several threads of their own use one while jobs are under way, and all when they are over."""
        before, self._wide = self._wide, [m for m in members if m.threads > 1]
        for member in before:
            member.rest(False)
        self._share_cores()

    def _share_cores(self) -> None:
        """With more than two threads one that waits for a core is not worth that the others do not work."""
        for member in self._wide if self.count == 2 else ():
            member.rest(bool(self._under_way))

    def aside(self, job: Callable[[], T]) -> Generator[None, None, T]:
        """Runs what cannot be cut into slices on a thread, so that limits and Ctrl-C stay prompt."""
        if self.at_once:
            return job()
        return (yield from self.wait_for(self.submit(job)))

    def wait_for(self, task: Task[T]) -> Generator[None, None, T]:
        """Yields at every deadline that passes before its end."""
        while not task.wait(min(self.left, 60.0)):
            yield
        return task.result()

    def work_off(self, parts: Sequence[Busy]) -> None:
        """Members do what they owe, at the same time if there are threads."""
        members = [m for part in parts for m in part.busy]
        if self.count == 1 or len(members) < 2:
            for part in parts:
                part.work_off(self.deadline)
            return
        members.sort(key=lambda m: m.threads == 1)  # who can use all threads in the end waits for nobody
        self.make_room(members)
        tasks = [self.submit(partial(m.work_off, self.deadline)) for m in members[1:]]
        members[0].work_off(self.deadline)
        self._threads.help()
        for task in tasks:
            task.result()
        self.make_room([])

    def close(self) -> None:
        """What is under way ends soon."""
        if self._crew is not None:
            self._crew.close()

    @property
    def _threads(self) -> Crew:
        if self._crew is None:
            self._crew = Crew(max(1, self.count - 1))
        return self._crew
