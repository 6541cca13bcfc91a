"""Many independent jobs on a Dask cluster: one after the other they come back, whatever happens to single workers."""

from __future__ import annotations

import gc
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from fginfer.core import clock
from fginfer.errors import SettingsError, SolverError

J = TypeVar("J")
R = TypeVar("R")

RETRIES = 3  # tries of a job whose worker was lost or raised something that may pass
CONNECT = 10.0  # seconds in which a scheduler has to answer
PATIENCE = 60.0  # seconds without a single worker before we give up: Dask itself would wait for ever


@contextmanager
def client_of(cluster: Any, security: Any = None, timeout: float | None = None) -> Iterator[Any]:
    """A Dask client: the one given, or one for the address of a scheduler ("tcp://host:8786"), closed in the end.

    `security` (a distributed.Security) has the certificates for an address that begins with tls://.
    """
    if not isinstance(cluster, str):
        if security is not None:
            raise SettingsError("security goes with the address of a scheduler; a Client has its own already")
        if not hasattr(cluster, "submit") or not hasattr(cluster, "gather"):
            raise SettingsError(f"client must be a dask.distributed.Client or an address, not {cluster!r}")
        yield cluster
        return
    try:
        from distributed import Client  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise SettingsError('a cluster needs Dask: pip install "fginfer[dask]"') from None
    reason = None
    try:
        client = Client(cluster, timeout=CONNECT if timeout is None else timeout, security=security)  # type: ignore[no-untyped-call, unused-ignore]
    except (OSError, ValueError, TypeError) as error:  # a TypeError: tls:// without certificates
        reason = " ".join(str(error).split())
    if reason is not None:
        # The client that failed is freed now. Freed while another one begins, it would make both wait for ever.
        gc.collect()
        what = "start one with `dask scheduler`, or give security= if it wants TLS"
        raise SettingsError(f"there is no scheduler at {cluster!r} ({reason}); {what}")
    with client:
        yield client


def check_workers(client: Any) -> None:
    """At least one worker, and fginfer on all of them: one that cannot read its jobs would close without a word."""

    def missing() -> str:  # a function inside a function travels by value, so it arrives everywhere
        try:
            import fginfer  # noqa: F401
        except ImportError as error:
            return str(error)
        return ""

    answers = client.run(missing)
    if not answers:
        raise SettingsError("the Dask scheduler has no workers; start some with `dask worker ADDRESS`")
    for worker, answer in answers.items():
        if answer:
            raise SettingsError(f"the Dask worker {worker} cannot import fginfer ({answer}); install it there, too")


class Watch:
    """Raises SolverError once a cluster has been without workers for PATIENCE seconds."""

    def __init__(self, client: Any) -> None:
        self._client, self._seen = client, clock.now()

    def look(self) -> None:
        if self._client.nthreads():
            self._seen = clock.now()
        elif clock.now() - self._seen > PATIENCE:
            raise SolverError(f"the Dask cluster has had no workers for {PATIENCE:g} s")


def cluster_map(
    function: Callable[[J], R], jobs: Sequence[J], cluster: Any, security: Any = None
) -> Iterator[tuple[int, R]]:
    """(number, answer) of every job, as they come in; jobs of a lost worker are done again by another one."""
    with client_of(cluster, security) as client:
        check_workers(client)
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        futures = {client.submit(function, job, pure=False, retries=RETRIES): k for k, job in enumerate(jobs)}
        for future in futures:
            future.add_done_callback(finished.put)
        watch = Watch(client)
        try:
            for _ in jobs:
                future = _next(finished, watch)
                yield futures[future], future.result()
        finally:  # after an error or Ctrl-C nobody asks for the rest
            client.cancel(list(futures))


def _next(finished: queue.SimpleQueue[Any], watch: Watch) -> Any:
    while True:
        try:
            return finished.get(timeout=1.0)
        except queue.Empty:
            watch.look()
