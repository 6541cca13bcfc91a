"""DaskCrew: parts that live on the workers of a Dask cluster, one object a part, for as long as their worker lives.

Every question is a task that is bound to the worker that has the part, so Dask's dashboard shows the rounds.
A worker that is lost, or does not answer for very long, loses its parts: they are made anew on others, and the loop
goes back to the last round that was kept.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from time import sleep
from typing import Any

from fginfer.cluster import Watch, check_workers
from fginfer.core import clock
from fginfer.core.door import VERSION
from fginfer.errors import FginferError, SettingsError, SolverError
from fginfer.parts.crew import SLICED, Ask, PartsLost, make_part
from fginfer.parts.part import Part
from fginfer.parts.rules import RULES
from fginfer.parts.shard import Shard

_LOOK = 0.5  # seconds between two looks at who is there


class _Lodger:
    """A part on a worker. Questions from before a fault can still be on their way: they are not answered any more, and
    nobody works on a part while another question is being answered."""

    def __init__(self, part: Part) -> None:
        self._part, self._lock, self._turn = part, Lock(), 0

    def ask(self, turn: int, what: str, given: tuple[Any, ...]) -> Any:
        with self._lock:
            if turn < self._turn:
                raise Forgotten("a question from before a fault")
            self._turn = turn
            return getattr(self._part, what)(*given)


_HERE: dict[tuple[str, int], _Lodger] = {}  # on a worker: the parts it has, by run and number


class Forgotten(Exception):
    """The worker does not have this part: another one has its address now."""


def make_there(run: str, number: int, shard: Any, options: dict[str, Any]) -> str:
    """On a worker: makes a part. Errors of ours travel as values, for Dask would wrap them."""
    made: Callable[[int], Shard] = (lambda _: shard) if isinstance(shard, Shard) else shard
    _HERE[run, number] = _Lodger(make_part(number, made, options))
    return ""


def ask_there(run: str, number: int, what: str, turn: int, given: tuple[Any, ...]) -> Any:
    """On a worker: asks a part."""
    lodger = _HERE.get((run, number))
    if lodger is None:
        raise Forgotten(f"part {number}")
    return lodger.ask(turn, what, given)


def forget_there(run: str) -> None:
    """On a worker: the run is over."""
    for key in [key for key in _HERE if key[0] == run]:
        del _HERE[key]


class DaskCrew:
    """`shard` makes a part; with `travels` it does so on the worker, else here, and the part is sent."""

    can_lose = True

    def __init__(
        self, client: Any, n_parts: int, shard: Callable[[int], Shard], options: dict[str, Any], travels: bool
    ) -> None:
        self.n_parts, self._client, self._shard, self._options = n_parts, client, shard, options
        self._travels, self._run = travels, secrets.token_hex(8)
        if travels:
            check_travels(shard)
        check_workers(client)
        check_versions(client)
        self._able = {
            worker: True for worker in client.nthreads()
        }  # those that were looked at: have they this fginfer?
        self._watch, self._looked = Watch(client), clock.now()
        self._place: dict[int, str] = {}
        self._making: dict[int, Any] = {}
        self._futures: dict[int, Any] = {}
        self._answers: dict[int, Any] = {}
        self._asked, self._slowest, self._turn, self._is_round = clock.now(), 0.0, 0, False
        self._stalled: set[str] = set()
        self._losses = dict.fromkeys(range(n_parts), 0)  # workers of each part that were lost since it did a round
        self._ship_seconds = 0.0
        with self._reaching():
            self._make(range(n_parts))

    # -- places ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """SolverError where the scheduler is no more. With it everything is lost that its workers had."""
        try:
            yield
        except (FginferError, MemoryError, PartsLost):
            raise
        except Exception as error:
            if not self._is_cut_off():
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            raise SolverError(f"the Dask scheduler can no longer be reached ({reason})") from None

    def _is_cut_off(self) -> bool:
        if self._client.status != "running":
            return True
        try:
            self._client.nthreads()
        except Exception:
            return True
        return False

    def _workers(self) -> list[str]:
        """The addresses of those that can work. One that has come late is asked which fginfer it has."""
        known = sorted(self._client.nthreads())
        new = [w for w in known if w not in self._able]
        if new:
            said = versions(self._client, new)
            self._able |= {w: version == VERSION for w, version in said.items() if isinstance(version, str)}
        able = [w for w in known if self._able.get(w)]
        return [w for w in able if w not in self._stalled] or able

    def _make(self, numbers: Any) -> None:
        """Makes parts where fewest are, one after the other so that no more than one is here at a time."""
        began = clock.now()
        for number in numbers:
            workers = self._workers()
            while not workers:
                self._watch.look()
                sleep(_LOOK)
                workers = self._workers()
            held = list(self._place.values())
            address = min(workers, key=lambda w: (held.count(w), w))
            self._place[number] = address
            shard: Any = self._shard
            if not self._travels:
                shard = self._sent(self._shard(number), address)
            self._making[number] = self._submit(make_there, number, address, shard, self._options)
        self._ship_seconds += clock.now() - began

    def _sent(self, shard: Shard, address: str) -> Any:
        """A shard on a worker. Where that has just died the next look will say so."""
        try:
            return self._client.scatter([shard], workers=[address], hash=False)[0]
        except Exception:
            if address in self._client.nthreads():
                raise
            return None

    def _submit(self, function: Any, number: int, address: str, *given: Any) -> Any:
        name = f"{given[0] if function is ask_there else 'make'}-part-{number}-{secrets.token_hex(6)}"
        return self._client.submit(
            function, self._run, number, *given, key=name, workers=[address], allow_other_workers=False, pure=False
        )

    # -- questions ---------------------------------------------------------------------------------------------

    def begin(self, ask: Ask) -> None:
        with self._reaching():
            self._begin(ask)

    def _begin(self, ask: Ask) -> None:
        self._answers, self._is_round = {}, ask.what in SLICED
        for number, making in list(self._making.items()):  # made before they are asked
            self._wait_for(number, making)
        self._futures = {
            p: self._submit(ask_there, p, self._place[p], ask.what, self._turn, ask.given[p]) for p in sorted(ask.given)
        }
        self._asked = clock.now()

    def _wait_for(self, number: int, making: Any) -> None:
        while self._place[number] in self._client.nthreads():
            if making.done():
                try:
                    making.result(timeout=_LOOK)
                    del self._making[number]
                    return
                except TimeoutError:
                    pass
                except (FginferError, MemoryError):
                    raise
                except Exception:  # a worker that dies takes with it what was on its way
                    if self._place[number] in self._client.nthreads():
                        raise
            sleep(0.002)

    def wait(self, seconds: float) -> dict[int, Any] | None:
        with self._reaching():
            return self._wait(clock.now() + seconds)

    def _wait(self, deadline: float) -> dict[int, Any] | None:
        while self._futures:
            for number, future in list(self._futures.items()):
                if future.done():
                    self._take(number, future)
            if not self._futures:
                break
            if clock.now() - self._looked > _LOOK:
                self._look()
            if clock.now() >= deadline:
                return None
            sleep(0.001)
        self._slowest = max(self._slowest, clock.now() - self._asked)
        if self._is_round:
            self._losses = dict.fromkeys(self._losses, 0)
        return self._answers

    def _take(self, number: int, future: Any) -> None:
        """The answer of a task that is done; its worker can die before the answer is here, so nobody waits for long."""
        try:
            self._answers[number] = future.result(timeout=_LOOK)
        except (FginferError, MemoryError):
            raise
        except TimeoutError:
            return
        except Forgotten:
            self._lose([number])
        except Exception:
            if self._place[number] in self._client.nthreads():
                raise
            self._lose([number])
        del self._futures[number]

    def _look(self) -> None:
        """Are all there, and has nobody stalled?"""
        self._looked = clock.now()
        self._watch.look()
        there = self._client.nthreads()
        gone = [p for p, w in self._place.items() if w not in there]
        waited = clock.now() - self._asked
        if not gone and waited > max(RULES.stalled_seconds, RULES.stalled_ratio * self._slowest):
            late = {self._place[p] for p in self._futures}
            if len(late) < len(there):  # where all are late the work is larger than we thought
                self._stalled |= late
                gone = [p for p, w in self._place.items() if w in late]
        if gone:
            self._lose(gone)

    def _lose(self, numbers: list[int]) -> None:
        """Parts that are gone are made anew; workers that came late get their share."""
        with suppress(Exception):
            self._client.cancel(list(self._futures.values()))
        self._futures, self._answers = {}, {}
        self._turn += 1
        for number in numbers:
            self._place.pop(number, None)
            self._making.pop(number, None)
            self._losses[number] += 1
        self._check_losses()
        for number in self._too_many(len(numbers)):
            self._place.pop(number)
            numbers = [*numbers, number]
        self._make(sorted(numbers))
        raise PartsLost

    def _check_losses(self) -> None:
        """SolverError for parts whose workers die again and again: new ones would do the same for ever."""
        often = [str(p) for p, n in self._losses.items() if n > RULES.most_losses]
        if often:
            of = f"part {often[0]}" if len(often) == 1 else f"parts {', '.join(often)}"
            again = f"{RULES.most_losses + 1} workers were lost one after the other before a round was done"
            raise SolverError(f"{of}: {again}; has a worker the memory for it?")

    def _too_many(self, homeless: int) -> list[int]:
        """Parts of workers that have more than their share."""
        workers, held = self._workers(), list(self._place.items())
        if not workers:
            return []
        share = -(-self.n_parts // len(workers))
        out: list[int] = []
        for w in workers:
            out += [p for p, at in held if at == w][share:]
        return out

    def invite(self) -> None:
        """PartsLost where workers have come that have no parts, and others have several: parts move to them."""
        with self._reaching():
            idle = set(self._workers()) - set(self._place.values())
            if idle and (moved := self._too_many(0)):
                self._lose(moved)

    def close(self) -> None:
        with suppress(Exception):
            self._client.cancel(list(self._futures.values()))
            there = set(self._client.nthreads()) - self._stalled  # one that is stalled would not answer
            self._client.run(forget_there, self._run, workers=sorted(there))

    def statistics(self) -> dict[str, float]:
        return {"workers": float(len(set(self._place.values()))), "ship_seconds": self._ship_seconds}


def versions(client: Any, workers: list[str] | None = None) -> dict[str, str | Exception]:
    """Which fginfer workers have, by their addresses; what went wrong, for those that cannot say."""

    def version() -> str:  # a function inside a function travels by value, so it arrives everywhere
        from fginfer.core.door import VERSION

        return VERSION

    found: dict[str, str | Exception] = client.run(version, workers=workers, on_error="return")
    return found


def check_versions(client: Any) -> None:
    """SettingsError for a worker with another fginfer."""
    for worker, version in versions(client).items():
        if version != VERSION:
            raise SettingsError(f"the Dask worker {worker} has fginfer {version}, this is {VERSION}; install the same")


def check_travels(build: Any) -> None:
    """SettingsError for a function that cannot be sent to workers."""
    try:
        from distributed.protocol.pickle import dumps

        dumps(build)  # type: ignore[no-untyped-call, unused-ignore]
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise SettingsError(f"build cannot be sent to the workers ({error})") from None
