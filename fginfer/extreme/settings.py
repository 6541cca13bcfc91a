"""The settings of ExtremeClassifier: what is allowed, and what the core is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from fginfer.core.extreme import LOSSES, SEARCHES
from fginfer.errors import SettingsError
from fginfer.options import check_flag, check_whole, is_number

INTERCEPTS = {  # (learned, value or centre of the regulariser)
    "fixed": (0, -1.0),
    "shifted": (1, -1.0),
    "learned": (1, 0.0),
    "none": (0, 0.0),
}
# Options of the solvers besides the parameters of the estimator, with their defaults.
PPD_OPTIONS: dict[str, Any] = {"max_inner": 10, "admit": 0.5, "admit_least": 200, "sparsify": 0.0}
# pd-sparse: partitions (None: 3 where weights are fewer than rows, else 1) and how the most violating label is found,
# "rows" (sparse weights by feature) or "index" (a search index over dense ones: few features, rows that have most).
# refit: after training, once more over the weights that were found, without l1.
PD_OPTIONS: dict[str, Any] = {"partitions": None, "search": "rows", "refit": False}


@dataclass(frozen=True)
class SolverKind:
    """by_label: every label is trained alone, so that some can be trained again, and workers can share them."""

    name: str
    options: dict[str, Any]
    by_label: bool


SOLVERS = {
    kind.name: kind
    for kind in (SolverKind("ppd-sparse", PPD_OPTIONS, True), SolverKind("pd-sparse", PD_OPTIONS, False))
}


def trains_by_label(estimator: Any) -> bool:
    """Whether its solver does, if there is such a solver."""
    return SOLVERS[estimator.solver].by_label if estimator.solver in SOLVERS else False


MOST_DENSE = 1 << 28  # weights that an index may keep: 1 GB


def check_real(name: str, value: Any, low: float, strict: bool) -> None:
    if not is_number(value) or not isfinite(value):
        raise SettingsError(f"{name} must be a finite number, not {value!r}")
    if float(value) < low or (strict and float(value) == low):
        raise SettingsError(f"{name} must be {'larger than' if strict else 'at least'} {low:g}, not {value!r}")


def _positive(name: str, value: Any) -> None:
    check_whole(name, value, 1, 31)


def _positive_or_none(name: str, value: Any) -> None:
    if value is not None:
        check_whole(name, value, 1, 31)


def _not_negative(name: str, value: Any) -> None:
    check_real(name, value, 0.0, False)


def _known_search(name: str, value: Any) -> None:
    if value not in SEARCHES:
        raise SettingsError(f"{name} must be one of {', '.join(SEARCHES)}, not {value!r}")


_OPTION_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "max_inner": _positive, "admit": _not_negative, "admit_least": _positive, "sparsify": _not_negative,
    "partitions": _positive_or_none, "search": _known_search, "refit": check_flag,
}  # fmt: skip


def check_settings(e: Any) -> None:
    """SettingsError for whatever an ExtremeClassifier cannot work with."""
    for name, allowed in (("solver", tuple(SOLVERS)), ("loss", tuple(LOSSES)), ("intercept", tuple(INTERCEPTS))):
        if getattr(e, name) not in allowed:
            raise SettingsError(f"{name} must be one of {', '.join(allowed)}, not {getattr(e, name)!r}")
    check_real("C", e.C, 0.0, True)
    check_real("lam", e.lam, 0.0, False)
    check_real("positive_weight", e.positive_weight, 0.0, True)
    check_real("tol", e.tol, 0.0, False)
    check_real("prune", e.prune, 0.0, False)
    check_whole("max_iter", e.max_iter, 1, 31)
    if e.time_limit is not None:
        check_real("time_limit", e.time_limit, 0.0, False)
    if e.n_jobs is not None and (not is_number(e.n_jobs, whole=True) or e.n_jobs == 0):
        raise SettingsError(f"n_jobs must be a whole number other than 0, or None, not {e.n_jobs!r}")
    if not trains_by_label(e) and e.scheduler not in (None, "threads"):
        raise SettingsError("pd-sparse trains all labels together, on this machine; ppd-sparse takes a scheduler")
    options(e)


def options(e: Any) -> dict[str, Any]:
    """The solver's options, defaults filled in."""
    known = SOLVERS[e.solver].options
    given = dict(e.solver_options or {})
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingsError(f"{e.solver} has no option {', '.join(unknown)}; its options are {', '.join(known)}")
    out = {**known, **given}
    for name, value in out.items():
        _OPTION_CHECKS[name](name, value)
    return out


def ppd_settings(e: Any, seed: int) -> dict[str, Any]:
    """What the core is told (fgi_ppd_settings)."""
    learned, bias = INTERCEPTS[e.intercept]
    C, lam = e._strength()
    return {
        "loss": LOSSES[e.loss], "C": C, "lambda": lam, "positive_weight": float(e.positive_weight),
        "learn_bias": learned, "bias": bias, "tol": float(e.tol), "max_outer": int(e.max_iter), "seed": seed,
        **{name: float(value) if isinstance(PPD_OPTIONS[name], float) else int(value)
           for name, value in options(e).items()},
    }  # fmt: skip
