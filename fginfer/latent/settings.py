"""Checks of the estimators' settings, before any data is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import DataError, SettingsError
from fginfer.options import is_number

SMALLEST, LARGEST = 1e-60, 1e60  # fourth powers are numbers, neither infinite nor 0


def check_number(
    estimator: Any, name: str, *, whole: bool = False, least: float | None = None, none: bool = False
) -> None:
    """A finite number of at least `least`, or a positive one (least=None)."""
    value = getattr(estimator, name)
    if none and value is None:
        return
    kind = "whole number" if whole else "number"
    if not is_number(value, whole) or not np.isfinite(value):
        raise SettingsError(f"{name} must be a {kind}{' or None' if none else ''}, not {value!r}")
    if value <= 0 if least is None else value < least:
        raise SettingsError(f"{name} must be {'positive' if least is None else f'at least {least}'}, not {value!r}")


def check_moderate(estimator: Any, *names: str) -> None:
    """Positive numbers that may be squared and multiplied with each other."""
    for name in names:
        check_number(estimator, name)
        if not SMALLEST < getattr(estimator, name) < LARGEST:
            raise SettingsError(f"{name} must be between {SMALLEST} and {LARGEST}, not {getattr(estimator, name)!r}")


def check_run(estimator: Any) -> None:
    """What has nothing to do with the model: threads and callback."""
    jobs, callback = estimator.n_jobs, estimator.callback
    if jobs is not None and not (is_number(jobs, whole=True) and jobs != 0):
        raise SettingsError(f"n_jobs must be None or a number of threads (-1: all processors), not {jobs!r}")
    if callback is not None and not callable(callback):
        raise SettingsError(f"callback must be a function of a LassoPoint, not {callback!r}")


def check_flag(estimator: Any, name: str) -> None:
    if not isinstance(getattr(estimator, name), (bool, np.bool_)):
        raise SettingsError(f"{name} must be True or False, not {getattr(estimator, name)!r}")


def check_size(name: str, values: NDArray[np.float64]) -> None:
    """The largest entry must be neither too large nor too small to be computed with."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest != 0 and not SMALLEST < largest < LARGEST:
        raise DataError(f"the largest entry of {name} is {largest:.1e}: multiply {name} so that it comes near 1")


def check_choice(estimator: Any, name: str, choices: Any) -> None:
    value = getattr(estimator, name)
    if value not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}")
