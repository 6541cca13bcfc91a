"""Who trains the labels of PPD-Sparse: threads of the core, processes (joblib), or the workers of a Dask cluster.

Every label is a problem of its own with a random generator of its own, so all engines give the same bits. An engine is
given chunks of labels and yields the columns of each as they are done, in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fginfer.core.extreme import Columns, ExtremeData, Ints, PpdTrainer
from fginfer.errors import SettingsError, SolverError

MOST_LOSSES = 20  # of workers, after which a cluster is given up
MOST_LABELS = 512  # in a chunk: results come in often enough to be saved and shown


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


class Engine(Protocol):
    workers: int

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[Columns]:
        """Columns of the chunks as they are done; ends early, without what is unfinished, once stop() is true."""
        ...

    def close(self) -> None: ...


class Threads:
    """Threads of the core, on this machine. The main thread stays free to look at Ctrl-C and the clock."""

    def __init__(self, data: ExtremeData, settings: dict[str, Any], threads: int) -> None:
        self.workers = threads
        self._trainer = PpdTrainer(data, threads, **settings)

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[Columns]:
        for part in parts:
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
                    thread.join(0.02)
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


_trainers = threading.local()  # of a worker: making one costs a pass over the data


def train_chunk(data: ExtremeData, settings: dict[str, Any], labels: Ints, run: str) -> Columns:
    """What a worker does. Its trainer is kept for the next chunk of the same run."""
    if getattr(_trainers, "run", None) != run:
        _trainers.trainer, _trainers.run = PpdTrainer(data, 1, **settings), run
    columns: Columns = _trainers.trainer.train(labels)
    return columns


class Processes:
    """joblib: processes of this machine, or whatever joblib.parallel_config says."""

    def __init__(self, data: ExtremeData, settings: dict[str, Any], n_jobs: int) -> None:
        from joblib import Parallel

        self.workers, self._data, self._settings = n_jobs, data, settings
        # Large arrays are mapped into the processes, not copied.
        self._parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", max_nbytes="1M", mmap_mode="r")

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[Columns]:
        from joblib import delayed

        name = uuid4().hex
        found = self._parallel(delayed(train_chunk)(self._data, self._settings, part, name) for part in parts)
        for columns in found:
            yield columns
            if stop():
                found.close()
                return

    def close(self) -> None:
        pass


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
            try:
                self._client = distributed.Client(scheduler, timeout=5, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise SettingsError(
                    f"no Dask scheduler answers at {scheduler!r} ({error}); start one with `dask scheduler`"
                ) from None
        self.workers = max(1, sum(self._client.nthreads().values()))
        if not self._client.nthreads():
            self.close()
            raise SettingsError("the Dask scheduler has no workers; start some with `dask worker ADDRESS`")
        self._data, self._settings, self._name = data, settings, uuid4().hex
        self._scattered = self._client.scatter(data, broadcast=True, hash=False)

    def run(self, parts: Sequence[Ints], stop: Callable[[], bool]) -> Iterator[Columns]:
        open_parts = {}
        for at, part in enumerate(parts):
            open_parts[self._submit(part, len(parts) - at)] = part
        losses = 0
        try:
            while open_parts:
                # A result that is lost before it was fetched is computed again: then its future comes once more.
                for future in self._distributed.as_completed(list(open_parts), loop=self._client.loop):
                    if future.status == "finished":
                        columns = self._fetched(future)
                        if columns is not None:
                            del open_parts[future]
                            yield columns
                    elif future.status != "pending":
                        losses += 1
                        if losses > MOST_LOSSES:
                            raise SolverError("workers of the cluster are lost again and again")
                        part = open_parts.pop(future)
                        if future.status == "error" and not self._is_loss(future.exception()):
                            raise future.exception()
                        # All copies of the data went with their workers, or a chunk saw too many of them die.
                        self._scattered = self._client.scatter(self._data, broadcast=True, hash=False)
                        open_parts[self._submit(part, 0)] = part
                    if stop():
                        return
        finally:
            with suppress(Exception):
                self._client.cancel(list(open_parts))

    def _fetched(self, future: Any) -> Columns | None:
        try:
            columns: Columns = future.result()
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


def make_engine(data: ExtremeData, settings: dict[str, Any], scheduler: Any, threads: int) -> Engine:
    """threads (None), processes ("processes"), or a Dask cluster (an address, or a distributed.Client)."""
    if scheduler is None or scheduler == "threads":
        return Threads(data, settings, threads)
    if isinstance(scheduler, str) and scheduler == "processes":
        return Processes(data, settings, threads)
    if isinstance(scheduler, str) and "://" not in scheduler:
        raise SettingsError(
            f"scheduler must be 'threads', 'processes', an address such as 'tcp://host:8786' or a dask Client, "
            f"not {scheduler!r}"
        )
    if not isinstance(scheduler, str) and not hasattr(scheduler, "scatter"):
        raise SettingsError(f"scheduler must be an address or a dask Client, not {scheduler!r}")
    return Dask(data, settings, scheduler)
