"""What the page says about the run: status, trace, what presolve did, and the ledger of who worked on what."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from fginfer.printable import printable
from fginfer.result import Result

MOST_POINTS = 400  # points of the trace
COLUMNS = ("work", "seconds", "iterations", "nodes", "sweeps", "labelings", "bounds")


def run_facts(result: Result) -> dict[str, Any]:
    facts = {
        "status": result.status.replace("_", " "),
        "score": _number(result.score),
        "bound": _number(result.bound),
        "gap": _number(result.gap, "{:.2e}"),
        "method": result.method,
        "labeling found by": result.found_by,
        "proven by": result.proved_by,
        "iterations": str(result.iterations),
        "seconds": f"{result.seconds:.3g}",
    }
    presolve, members, other = _statistics(result.statistics)
    return {
        "facts": [[k, printable(v)] for k, v in facts.items() if v is not None],
        "status": result.status,
        "presolve": presolve,
        "members": members,
        "other": other,
        "trace": _trace(result),
    }


def _number(x: float | None, form: str = "{:.10g}") -> str | None:
    return None if x is None else form.format(x)


def _statistics(counted: dict[str, float]) -> tuple[list[Any], list[Any], list[Any]]:
    """Presolve's, a row for each member of a portfolio, and the rest."""
    presolve, other = [], []
    members: dict[str, dict[str, float]] = {}
    for name, value in counted.items():
        who, dot, what = name.partition(".")
        if who == "presolve" and dot:
            presolve.append([what.replace("_", " "), f"{value:g}"])
        elif dot and what in COLUMNS:
            members.setdefault(who, {})[what] = value
        else:
            other.append([name.replace("_", " "), f"{value:g}"])
    rows = [[who, *(f"{row[c]:.3g}" if c in row else "" for c in COLUMNS)] for who, row in members.items()]
    return presolve, rows, other


def _trace(result: Result) -> list[list[float | None]]:
    n = len(result.trace)
    if not n:
        return []
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int)).tolist()
    return [[_finite(p.seconds), _finite(p.score), _finite(p.bound)] for p in (result.trace[k] for k in kept)]


def _finite(x: float | None) -> float | None:
    return None if x is None or not isfinite(x) else float(x)
