"""Crew: threads that do jobs of ours, whatever the system and the interpreter say to them.

The executors of the standard library refuse jobs once the interpreter has begun to end, lose them when no thread can
be started, and wait for ever in a forked child. Here a job that finds no thread is done at once by who brings it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL
from functools import cache
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """A job given to a crew."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._job: Callable[[], T] | None = job
        self._ended = Event()
        self._process = os.getpid()
        self._value: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        job = self._job
        if job is None:  # done, or another thread is at it
            return
        try:
            self._value = job()
        except BaseException as error:  # whoever asks for the result gets it
            self._error = error
        finally:
            self._job = None
            self._ended.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the job is done, or for so long; True if it is done."""
        if self._process != os.getpid() and not self._ended.is_set():  # forked: its thread stayed behind
            self._ended, self._process = Event(), os.getpid()
            self.run()
        return self._ended.wait(seconds)

    def result(self) -> T:
        """What the job returned; raises what it raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value


class Crew:
    """At most `size` threads, started when there is work for them. They are daemons: a process may end without them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._begin()

    def _begin(self) -> None:
        self._jobs: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._started = 0
        self._process = os.getpid()

    def submit(self, job: Callable[[], T]) -> Task[T]:
        """Has the job done by one of the threads; if there is none, and none can be started, does it now."""
        if self._process != os.getpid():  # forked: the threads stayed behind
            self._begin()
        task = Task(job)
        if self._started < self._size:
            _load_unwinder()
            try:
                Thread(target=_work, args=(self._jobs,), daemon=True).start()
                self._started += 1
            except RuntimeError:  # the system refuses, or the interpreter is about to end
                self._size = self._started
        if self._started:
            self._jobs.put(task)
        else:
            task.run()
        return task

    def help(self) -> None:
        """Does what is still waiting for a thread."""
        while True:
            try:
                task = self._jobs.get_nowait()
            except Empty:
                return
            if task is not None:
                task.run()

    def close(self) -> None:
        """The threads end after what they have been given."""
        if self._process == os.getpid():
            for _ in range(self._started):
                self._jobs.put(None)
        self._begin()

    def __del__(self) -> None:
        if hasattr(self, "_jobs"):
            self.close()


@cache
def _load_unwinder() -> None:
    """A daemon that is alive when the interpreter ends leaves by pthread_exit, and glibc loads this library for it.
    It cannot where memory is used up by then, and aborts the process."""
    if sys.platform == "linux":
        with suppress(OSError):
            CDLL("libgcc_s.so.1")


def _work(jobs: SimpleQueue[Task[Any] | None]) -> None:
    """The life of a thread. It knows the queue alone, so that a crew nobody needs any more is collected."""
    while (task := jobs.get()) is not None:
        task.run()
        del task  # and what it has returned
