"""Linear and quadratic programs over binary variables, .lp and .mps (needs highspy): HiGHS reads them for us.

A variable with the bounds 0 and 1 that must be whole becomes a variable with two labels. Rows become constraints with
their names, the objective becomes scores: it is negated where it is minimised.
"""

from __future__ import annotations

import os
import tempfile
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.boolean import FEW, Exact, Linear
from fginfer.formats.quadratic import quadratic_graph
from fginfer.formats.streams import open_binary, read_whole
from fginfer.graph import FactorGraph
from fginfer.names import Names, shown
from fginfer.rules import exact_number

_PER_COLUMN, _PER_ENTRY = 400, 300  # bytes that HiGHS and the graph take


def read_lp(path: Path, budget: Budget) -> FactorGraph:
    """Reads a program in CPLEX's LP format."""
    return _graph(_model(path, budget, ".lp"), path, budget)


def read_mps(path: Path, budget: Budget) -> FactorGraph:
    """Reads a program in MPS format, fixed or free."""
    return _graph(_model(path, budget, ".mps"), path, budget)


def _model(path: Path, budget: Budget, suffix: str) -> Any:
    """What HiGHS reads in the file. It goes by extensions and takes no streams, so it gets a copy."""
    try:
        import highspy
    except ImportError:
        raise FormatError(f"{suffix} files are read by HiGHS: pip install highspy", str(path)) from None
    with open_binary(path) as stream:
        text = read_whole(stream, budget)
    if b"\0" in text:
        raise FormatError("not a text file: it has a zero byte", str(path), text[: text.index(b"\0")].count(b"\n") + 1)
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise FormatError("not a text file: it has bytes that are not UTF-8", str(path), line) from None
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, f"model{suffix}")
        Path(copy).write_bytes(text)
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call, unused-ignore]
        solver.setOptionValue("output_flag", False)
        if solver.readModel(copy) != highspy.HighsStatus.kOk:
            raise FormatError(f"HiGHS reads no model in it; is it {suffix[1:].upper()} format?", str(path))
        return solver.getModel()


def _graph(model: Any, path: Path, budget: Budget) -> FactorGraph:
    program = model.lp_
    n, m = int(program.num_col_), int(program.num_row_)
    start, index, value = (_array(getattr(program.a_matrix_, name)) for name in ("start_", "index_", "value_"))
    budget.take(_PER_COLUMN * float(n + m) + _PER_ENTRY * float(len(index)), "the program")
    columns = _names(program.col_names_, n, "x", path)
    low, high = _array(program.col_lower_), _array(program.col_upper_)
    _check_binary(program, columns, low, high, path)
    sign = -1.0 if "Minimize" in str(program.sense_) else 1.0
    rows, cols, scores = _objective(model, n, sign)
    if not (np.isfinite(scores).all() and isfinite(program.offset_)):
        raise FormatError("the objective has a coefficient that is not finite", str(path))
    graph = quadratic_graph(n, rows, cols, scores, sign * float(program.offset_))
    for v in np.flatnonzero((low > 0) | (high < 1)).tolist():
        graph.add_factor([v], [0.0 if low[v] <= 0 else -inf, 0.0 if high[v] >= 1 else -inf])
    graph.take_names(Names.of(dict(enumerate(columns)), {}))
    owner = np.repeat(np.arange(n), np.diff(start))
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(m + 1))
    least, most = _array(program.row_lower_), _array(program.row_upper_)
    for r, name in enumerate(_names(program.row_names_, m, "row", path)):
        mine = order[bounds[r] : bounds[r + 1]]
        _add_row(graph, name, owner[mine].tolist(), value[mine].tolist(), float(least[r]), float(most[r]), path)
    return graph


def _array(given: Any) -> NDArray[Any]:
    return np.array(given)


def _names(given: Any, n: int, letter: str, path: Path) -> list[str]:
    names = [str(name) for name in given] or [f"{letter}{i}" for i in range(n)]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FormatError(f"two of them have the name {shown(name)}", str(path))
        seen.add(name)
    return names


def _check_binary(
    program: Any, columns: list[str], low: NDArray[np.float64], high: NDArray[np.float64], path: Path
) -> None:
    kinds = [str(kind) for kind in program.integrality_] or ["kContinuous"] * len(columns)
    for v, kind in enumerate(kinds):
        fixed = low[v] == high[v] and low[v] in (0.0, 1.0)
        if not fixed and (not kind.endswith("kInteger") or low[v] < 0 or high[v] > 1):
            what = "whole" if kind.endswith("kInteger") else "not whole"
            raise FormatError(
                f"variable {shown(columns[v])} is not binary: it is {what}, from {low[v]:.12g} to {high[v]:.12g}",
                str(path),
            )


def _objective(model: Any, n: int, sign: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Entries (i, j, score): linear terms have i = j, and so have squares, for x times x is x."""
    every = np.arange(n)
    linear = sign * _array(model.lp_.col_cost_)
    if not model.hessian_.dim_:
        return every, every, linear
    hessian = model.hessian_
    rows, values = _array(hessian.index_).astype(np.int64), sign * _array(hessian.value_)
    cols = np.repeat(np.arange(hessian.dim_), np.diff(_array(hessian.start_)))
    half = np.where(rows == cols, 0.5, 1.0 if "Triangular" in str(hessian.format_) else 0.5)
    return np.concatenate([every, rows]), np.concatenate([every, cols]), np.concatenate([linear, half * values])


def _add_row(
    graph: FactorGraph, name: str, variables: list[int], weights: list[float], low: float, high: float, path: Path
) -> None:
    least, most = (None if abs(limit) == inf else limit for limit in (low, high))
    if (least is None and most is None) or not variables:
        if low > 0 or high < 0:
            graph.add_factor([], -inf, name=name)  # no terms, and limits that exclude 0
        return
    if least is not None and most is not None and least > most:
        raise FormatError(
            f"row {shown(name)} has the lower limit {least:.12g}, above the upper limit {most:.12g}", str(path)
        )
    try:
        if len(variables) <= FEW:
            exact: list[Exact] = [exact_number(name, "a coefficient", weight) for weight in weights]
            lowest, highest = (None if x is None else exact_number(name, "a limit", x) for x in (least, most))
            graph.add_factor(variables, Linear(variables, exact, lowest, highest, inf).table(), name=name)
        else:
            graph.add_linear([(v, 1) for v in variables], weights, least, most, name=name)
    except ModelError as error:
        raise FormatError(f"row {shown(name)}: {error}", str(path)) from None
