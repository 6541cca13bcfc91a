"""Many independent jobs on a Dask cluster: one after the other they come back, whatever happens to single workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from fginfer.errors import SettingsError

J = TypeVar("J")
R = TypeVar("R")

RETRIES = 3  # of a job whose worker was lost or raised something that may pass


@contextmanager
def client_of(cluster: Any, timeout: float = 10.0) -> Iterator[Any]:
    """A Dask client: the one given, or one for the address of a scheduler ("tcp://host:8786"), closed in the end."""
    if not isinstance(cluster, str):
        if not hasattr(cluster, "submit") or not hasattr(cluster, "gather"):
            raise SettingsError(f"client must be a dask.distributed.Client or an address, not {cluster!r}")
        yield cluster
        return
    try:
        from distributed import Client
    except ImportError:
        raise SettingsError('a cluster needs Dask: pip install "fginfer[dask]"') from None
    try:
        client = Client(cluster, timeout=timeout)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(
            f"there is no scheduler at {cluster!r} ({reason}); start one with `dask scheduler`"
        ) from None
    with client:
        yield client


def cluster_map(function: Callable[[J], R], jobs: Sequence[J], cluster: Any) -> Iterator[tuple[int, R]]:
    """(number, answer) of every job, as they come in; jobs of a lost worker are done again by another one."""
    with client_of(cluster) as client:
        from distributed import as_completed

        futures = {client.submit(function, job, pure=False, retries=RETRIES): k for k, job in enumerate(jobs)}
        try:
            for future in as_completed(list(futures)):  # type: ignore[no-untyped-call]
                yield futures[future], future.result()
        finally:  # after an error or Ctrl-C nobody asks for the rest
            client.cancel(list(futures))
