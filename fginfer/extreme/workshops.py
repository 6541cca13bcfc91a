"""Who trains the labels of PPD-Sparse: threads of the core, processes (joblib), or the workers of a Dask cluster.

Every label is a problem of its own with a random generator of its own, so all workshops give the same bits. A workshop
is given chunks of labels and yields the columns of each as they are done, in any order.
"""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from math import inf
from socket import gethostname
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fginfer.core.extreme import ExtremeData, Ints, LabelColumns, PpdTrainer
from fginfer.errors import SettingsError, SolverError
from fginfer.log import logger

MOST_LOSSES = 20  # losses of workers, after which a cluster is given up
MOST_LABELS = 512  # in a chunk: results come in often enough to be saved and shown
POLL = 0.02  # seconds between looks at Ctrl-C and the clock
# Threads wait for each other at the end of a chunk. The first chunks made for a cluster are single large labels, which
# would keep one thread busy and the others waiting, so a chunk has at least so many labels a thread (decision 0016).
LABELS_A_THREAD = 32


def chunks(positives: NDArray[Any], labels: NDArray[Any], workers: int) -> list[Ints]:
    """Labels in chunks of about the same work, the longest first: a late large one would keep the others waiting.

    A label's work is estimated by its positives, plus what every label costs. 32 chunks a worker let the last ones end
    about together.
    """
    if not len(labels):
        return []
    order = np.asarray(labels, np.int32)[np.argsort(-positives[labels], kind="stable")]
    cost = positives[order] + max(1.0, float(positives[order].mean()))
    share = cost.sum() / (32 * max(1, workers))
    out, begin, total = [], 0, 0.0
    for at, c in enumerate(cost):
        if at > begin and (total + c > share or at - begin >= MOST_LABELS):
            out.append(order[begin:at])
            begin, total = at, 0.0
        total += c
    return [*out, order[begin:]]


def merged(parts: Sequence[Ints], least: int) -> Iterator[Ints]:
    """The same labels in the same order, in chunks of at least so many (the last may be shorter)."""
    waiting: list[Ints] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= least:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


class Workshop(Protocol):
    """Somebody who trains labels."""

    workers: int

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        """Columns of the chunks as they are done; ends early, without what is unfinished, once stop() is true."""
        ...

    def close(self) -> None: ...


class Threads:
    """Threads of the core, on this machine. The main thread stays free to look at Ctrl-C and the clock."""

    def __init__(self, data: ExtremeData, settings: dict[str, Any], threads: int) -> None:
        self.workers = threads
        self._trainer = PpdTrainer(data, threads, **settings)

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        for part in merged(parts, LABELS_A_THREAD * self.workers if self.workers > 1 else 1):
            if stop():
                return
            box: list[Any] = []

            def work(part: Ints = part, box: list[Any] = box) -> None:
                try:
                    box.append(self._trainer.train(part))
                except BaseException as error:  # raised again where it is seen
                    box.append(error)

            thread = threading.Thread(target=work, name="fginfer-extreme")
            thread.start()
            try:
                while thread.is_alive():
                    thread.join(POLL)
                    if stop():
                        self._trainer.stop()
            finally:
                if thread.is_alive():
                    self._trainer.stop()
                    thread.join()
            if isinstance(box[0], BaseException):
                raise box[0]
            yield box[0]

    def close(self) -> None:
        pass


class Deadline(NamedTuple):
    """A moment that other processes understand: by the steady clock on this machine, elsewhere by the date."""

    host: str
    steady: float
    date: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(gethostname(), time.monotonic() + seconds, time.time() + seconds)

    def left(self) -> float:
        """Seconds, none below zero."""
        here = self.host == gethostname()
        return max(0.0, self.steady - time.monotonic() if here else self.date - time.time())


_trainers = threading.local()  # one trainer of a worker: making one costs a pass over the data


def train_chunk(
    data: ExtremeData, settings: dict[str, Any], labels: Ints, run: str, until: Deadline | None = None
) -> LabelColumns:
    """What a worker does. Its trainer is kept for the next chunk of the same run. It stops at `until`, without the
    labels it has not finished."""
    if getattr(_trainers, "run", None) != run:
        _trainers.trainer, _trainers.run = PpdTrainer(data, 1, **settings), run
    trainer: PpdTrainer = _trainers.trainer
    if until is None:
        return trainer.train(labels)
    alarm = threading.Timer(until.left(), trainer.stop)
    alarm.daemon = True
    alarm.start()
    try:
        return trainer.train(labels)
    finally:
        alarm.cancel()


class Processes:
    """joblib: processes of this machine, or whatever joblib.parallel_config says."""

    def __init__(self, data: ExtremeData, settings: dict[str, Any], n_jobs: int, seconds: float) -> None:
        self.workers, self._data, self._settings = n_jobs, data, settings
        self._until = Deadline.after(seconds) if seconds < inf else None

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        open_parts, name = {int(part[0]): part for part in parts}, uuid4().hex
        for _ in range(MOST_LOSSES):
            try:
                yield from self._run(open_parts, name, stop)
                return
            except TerminatedWorkerError:  # the chunks that are still open are given to new processes
                logger.warning(f"a process was lost; {len(open_parts)} chunks of labels are left")
        raise SolverError("processes are lost again and again")

    def _run(self, open_parts: dict[int, Ints], name: str, stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        from joblib import Parallel, delayed

        # Large arrays are mapped into the processes, not copied.
        parallel = Parallel(n_jobs=self.workers, return_as="generator_unordered", max_nbytes="1M", mmap_mode="r")
        tasks = [
            delayed(_numbered_chunk)(self._data, self._settings, p, name, self._until) for p in open_parts.values()
        ]
        found = parallel(tasks)
        try:
            for number, columns in found:
                del open_parts[number]
                yield columns
                if stop():
                    return
        finally:  # also when nobody asks for more
            with warnings.catch_warnings():  # that tasks are given up is what was wanted
                warnings.simplefilter("ignore", UserWarning)
                found.close()

    def close(self) -> None:
        pass


def _numbered_chunk(data: ExtremeData, settings: Any, labels: Ints, run: str, until: Any) -> tuple[int, LabelColumns]:
    """Also says which chunk it was: that of this first label."""
    return int(labels[0]), train_chunk(data, settings, labels, run, until)


class Dask:
    """A Dask cluster: the data are sent once to every worker; a chunk whose worker is lost goes to another one."""

    def __init__(self, data: ExtremeData, settings: dict[str, Any], scheduler: Any) -> None:
        try:
            import distributed as dask_distributed
        except ImportError:
            raise SettingsError('a scheduler needs Dask: pip install "dask[distributed]"') from None
        distributed: Any = dask_distributed
        self._distributed = distributed
        self._own = isinstance(scheduler, str)
        self._client: Any = scheduler
        if isinstance(scheduler, str):
            reason = None
            try:
                self._client = distributed.Client(scheduler, timeout=5, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:  # a TypeError: tls:// without certificates
                reason = str(error)
            if reason is not None:
                gc.collect()  # frees the client that failed, as in fginfer.cluster
                what = "start one with `dask scheduler`, or give a Client with security= if it wants TLS"
                raise SettingsError(f"no Dask scheduler answers at {scheduler!r} ({reason}); {what}")
        self.workers = max(1, sum(self._client.nthreads().values()))
        if not self._client.nthreads():
            self.close()
            raise SettingsError("the Dask scheduler has no workers; start some with `dask worker ADDRESS`")
        self._data, self._settings, self._name = data, settings, uuid4().hex
        self._scattered = self._client.scatter(data, broadcast=True, hash=False)

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        open_parts: dict[Any, Ints] = {}
        try:
            for at, part in enumerate(parts):
                open_parts[self._submit(part, len(parts) - at)] = part
            yield from self._collect(open_parts, stop)
        except (OSError, CancelledError) as error:
            raise SolverError(f"the Dask cluster is gone ({error or type(error).__name__})") from None
        finally:
            with suppress(Exception):
                self._client.cancel(list(open_parts))

    def _collect(self, open_parts: dict[Any, Ints], stop: Callable[[], bool]) -> Iterator[LabelColumns]:
        """Never waits long in one place, so that limits and Ctrl-C are seen even when no worker is left."""
        ready = self._distributed.as_completed(list(open_parts), loop=self._client.loop)
        losses = 0
        while open_parts and not stop():
            if not ready.has_ready():
                self._check_client()
                time.sleep(POLL)
                continue
            for future in ready.next_batch(block=False):
                if future.status == "finished" and (columns := self._fetched(future)) is not None:
                    del open_parts[future]
                    yield columns
                elif future.status in ("finished", "pending"):  # lost before it was fetched: it is computed again
                    ready.add(future)
                else:
                    losses += 1
                    ready.add(self._again(future, open_parts, losses))

    def _check_client(self) -> None:
        if self._client.status in ("closed", "closing"):
            raise SolverError("the Dask scheduler is gone")

    def _again(self, future: Any, open_parts: dict[Any, Ints], losses: int) -> Any:
        """The chunk of a failed future, submitted anew."""
        self._check_client()
        if future.status == "error" and not self._is_loss(future.exception()):
            raise future.exception()
        if losses > MOST_LOSSES:
            raise SolverError("workers of the Dask cluster are lost again and again")
        if not self._client.nthreads():
            raise SolverError("all workers of the Dask cluster are lost")
        # All copies of the data went with their workers, or a chunk saw too many of them die.
        part = open_parts.pop(future)
        if self._scattered.status != "finished":
            self._scattered = self._client.scatter(self._data, broadcast=True, hash=False)
        fresh = self._submit(part, 0)
        open_parts[fresh] = part
        return fresh

    def _fetched(self, future: Any) -> LabelColumns | None:
        try:
            columns: LabelColumns = future.result(timeout=10)
        except (OSError, CancelledError):
            return None
        return columns

    def _is_loss(self, error: Any) -> bool:
        return isinstance(error, (OSError, CancelledError, self._distributed.scheduler.KilledWorker))

    def _submit(self, part: Ints, priority: int) -> Any:
        return self._client.submit(
            train_chunk, self._scattered, self._settings, part, self._name,
            key=f"fginfer-extreme-{uuid4().hex}", priority=priority, pure=False, retries=3,
        )  # fmt: skip

    def close(self) -> None:
        if self._own:
            self._client.close()


def make_workshop(
    data: ExtremeData, settings: dict[str, Any], scheduler: Any, threads: int, seconds: float = inf
) -> Workshop:
    """threads (None), processes ("processes"), or a Dask cluster (an address, or a distributed.Client); seconds: that
    are left of a time limit, for processes that cannot be stopped from here."""
    if scheduler is None or scheduler == "threads":
        return Threads(data, settings, threads)
    if isinstance(scheduler, str) and scheduler == "processes":
        return Processes(data, settings, threads, seconds)
    if isinstance(scheduler, str) and "://" not in scheduler:
        raise SettingsError(
            f"scheduler must be 'threads', 'processes', an address such as 'tcp://host:8786' or a dask Client, "
            f"not {scheduler!r}"
        )
    if not isinstance(scheduler, str) and not hasattr(scheduler, "scatter"):
        raise SettingsError(f"scheduler must be an address or a dask Client, not {scheduler!r}")
    return Dask(data, settings, scheduler)
