"""One BLAS thread while an estimator fits or a network is trained.

The matrices are small (atoms by atoms, samples by inputs, batches by units), so that a second thread gains little on an
idle machine and spins on a busy one: fits took ten times as long beside other jobs. Sums also come out the same
whatever the machine's number of cores: products in single precision differ between one and two threads of OpenBLAS
0.3.31, and training carries that on to other weights. Needs threadpoolctl, which scikit-learn brings; without it
nothing is limited.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _controller() -> Any:
    """Looking for the loaded libraries takes milliseconds, so it is done once; None: no threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


def on_one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with one BLAS thread while it runs."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited
