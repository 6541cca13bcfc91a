"""One fit: a solver, its workshop and its checkpoint, driven to the end; and the model made of what it found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE
from fginfer.core import clock
from fginfer.core.arrays import owners
from fginfer.core.door import VERSION
from fginfer.core.extreme import INFO, ExtremeData, LabelColumns, Lines
from fginfer.errors import DataError, FormatError, SettingsError, SolverError
from fginfer.extreme.journal import Journal, Memory, fingerprint
from fginfer.extreme.model import SparseModel
from fginfer.extreme.settings import MOST_DENSE, options, ppd_settings
from fginfer.extreme.solvers import ExtremePoint, Pd, Ppd
from fginfer.extreme.workshops import make_workshop
from fginfer.learn.files import storage
from fginfer.learn.run.loop import LearnPoint, Limits, SoFar, drive, shown
from fginfer.log import logger, thousands


@dataclass
class Fitted:
    """What a fit has come to, when it was stopped, too."""

    model: SparseModel
    status: str
    trace: list[ExtremePoint]
    trained: int
    info: Any = None
    columns: list[LabelColumns] = field(default_factory=list)
    failure: Exception | None = None  # why the workers were given up; the rest is what they had done

    def raise_what_ended_it(self, kept: str) -> None:
        """KeyboardInterrupt or SolverError where training was not ended by its own limits; kept: what is not lost."""
        if self.status == "interrupted":
            raise KeyboardInterrupt
        if self.failure is not None:
            raise SolverError(f"{self.failure}; {kept}")


def _log_start(name: str, data: ExtremeData, threads: int, seed: int) -> None:
    many = "1 thread" if threads == 1 else f"{threads} threads"
    logger.info(f"fginfer {VERSION} · {name} · {many} · seed {seed} · the primal is minimised")
    sizes = [(data.rows.n, "rows"), (data.labels.width, "labels"), (data.rows.width, "features")]
    sizes += [(data.rows.nnz, "values"), (data.labels.nnz, "labels of rows")]
    logger.info(", ".join(f"{thousands(n)} {what}" for n, what in sizes))


def _callback(e: Any, solver: Any) -> Callable[[LearnPoint], Any] | None:
    if e.callback is None:
        return None
    return lambda point: e.callback(solver.sparsities.points([point])[0])


def _deadline(e: Any, begin: float) -> float:
    return inf if e.time_limit is None else begin + float(e.time_limit)


def fit_ppd(
    e: Any, data: ExtremeData, classes: NDArray[Any], seed: int, threads: int, begin: float, labels: Any = None
) -> Fitted:
    """PPD-Sparse; `labels` (numbers): only these."""
    settings = ppd_settings(e, seed)
    results: Any = Memory()
    if e.checkpoint is not None and labels is None:
        results = Journal(e.checkpoint, fingerprint(data, settings), data.rows.width, data.labels.width)
    wanted = np.arange(data.labels.width, dtype=np.int32) if labels is None else np.asarray(labels, np.int32)
    workshop = make_workshop(data, settings, e.scheduler, threads, _deadline(e, begin) - clock.now())
    try:
        with shown(e.verbose):
            _log_start("ppd-sparse", data, workshop.workers, seed)
            solver = Ppd(data, workshop, results, wanted, _deadline(e, begin))
            if solver.resumed:
                logger.info(f"{solver.resumed} labels are there from before")
            limits = Limits(float(e.tol), 1, e.time_limit)
            try:
                status, trace = drive(solver, limits, e.verbose, _callback(e, solver), begin=begin)
            finally:
                solver.close()
        columns = list(results)
    finally:
        workshop.close()
        results.close()
    info = np.zeros(data.labels.width, INFO)
    for c in columns:
        info[c.labels] = c.info
    model = SparseModel.from_columns(columns, data.rows.width, classes, settings["bias"], {})
    status = status if solver.failure is None else "failed"
    points = solver.sparsities.points(trace)
    return Fitted(model, status, points, solver.trained, info, columns, solver.failure)


def fit_pd(e: Any, data: ExtremeData, classes: NDArray[Any], seed: int, threads: int, begin: float) -> Fitted:
    """PD-Sparse."""
    empty = np.flatnonzero(np.diff(data.labels.begin) == 0)
    if len(empty):
        raise DataError(
            f"row {empty[0]} has no label ({len(empty)} such rows); pd-sparse compares the labels a row has with the "
            "others: leave those rows out, or use ppd-sparse"
        )
    parts, search = options(e)["partitions"], options(e)["search"]
    if search == "index":
        parts = 1 if parts is None else parts
        if parts != 1:
            raise SettingsError("an index searches all labels: leave partitions out")
        if data.rows.width * data.labels.width > MOST_DENSE:
            raise SettingsError(
                f"an index keeps all {data.rows.width} x {data.labels.width} weights, which is too much: search by rows"
            )
    elif parts is None:  # the search is the bottleneck where weights are as many as rows (thesis, section 2.1.2)
        parts = 3 if data.rows.width * data.labels.width <= data.rows.n and data.labels.width >= 6 else 1
    order = np.arange(data.labels.width)
    if parts > 1:  # parts are ranges of label numbers: shuffled, they are random
        order = np.random.default_rng(seed).permutation(data.labels.width)
    shuffled = ExtremeData(data.rows, renumbered(data.labels, order)) if parts > 1 else data
    C, lam = e._strength()
    solver = Pd(shuffled, threads, seed, C, lam, int(parts), search)
    run = PdCheckpoint(e.checkpoint, solver, fingerprint(data, {"C": C, "lam": lam, "parts": parts, "seed": seed}))

    def current() -> SparseModel:
        weights = solver.core.weights()
        weights = renumbered(weights, np.argsort(order)) if parts > 1 else weights
        return SparseModel(weights, np.zeros(len(classes), np.float32), classes, {})

    watch = getattr(e.callback, "watch", None)  # one that wants to see the weights (fginfer.extreme.search)
    if watch is not None:
        watch.model = current
    with shown(e.verbose):
        _log_start("pd-sparse", data, threads, seed)
        limits = Limits(float(e.tol), int(e.max_iter), e.time_limit, 0, float(e.checkpoint_interval))
        status, trace = drive(solver, limits, e.verbose, _callback(e, solver), run.save, run.progress, begin)
        if options(e)["refit"] and status != "interrupted":
            try:
                solver.refit(float(e.tol), int(e.max_iter), _deadline(e, begin))
            except KeyboardInterrupt:
                status = "interrupted"
    return Fitted(current(), status, solver.sparsities.points(trace), len(classes))


def renumbered(lines: Lines, number: NDArray[Any]) -> Lines:
    """Index k becomes number[k]; lines stay ascending."""
    index = number[lines.index].astype(np.int32)
    row = owners(lines.begin)
    order = np.lexsort((index, row))
    value = None if lines.value is None else lines.value[order]
    return Lines(lines.begin, index[order], value, lines.width)


class PdCheckpoint:
    """The state of pd-sparse in a file; `progress` says what a continued run has behind it."""

    def __init__(self, path: str | os.PathLike[str] | None, solver: Pd, mark: str) -> None:
        self._path, self._solver, self._mark = path, solver, mark
        self.progress = SoFar()
        if path is None or not os.path.exists(path):
            return
        header, arrays = storage.read(path)
        if "fingerprint" not in header or "progress" not in header:
            raise FormatError("this is no checkpoint", str(path))
        if header["fingerprint"] != mark:
            raise SettingsError(f"the checkpoint {path} was written for other data or settings")
        try:
            solver.restore(arrays)
            self.progress = SoFar.restored(header["progress"])
        except DAMAGE as error:
            raise FormatError(f"damaged checkpoint ({error})", str(path)) from None

    def save(self, progress: SoFar) -> None:
        if self._path is not None:
            header = {"fingerprint": self._mark, "progress": asdict(progress)}
            storage.write(self._path, header, self._solver.export())
