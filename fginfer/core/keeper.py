"""Keeper: the labels, messages, score and bound of a model, kept up to date while its numbers change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import DENSE
from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model
from fginfer.errors import ModelError, SettingsError, SolverError


@dataclass(frozen=True)
class KeptFactor:
    """A factor to be added: `values` of a dense table, or `params` of an implicit one."""

    variables: NDArray[np.int32]
    kind: int = DENSE
    values: NDArray[np.float64] | None = None
    params: tuple[float, float] = (0.0, 0.0)
    weight: float = 1.0
    transposed: bool = False


class Keeper:
    """Begins with a model, messages (None: zeros) and a labeling; see csrc/include/fginfer_again.h.

    SolverError: what it cannot keep up to date. A model, or a change, that is refused leaves it as it was.
    """

    def __init__(self, model: Model, messages: NDArray[np.float64] | None, labels: NDArray[np.int32]) -> None:
        out, error = ffi.new("fgi_keeper **"), new_error()
        check(lib.fgi_keeper_create(model.handle, pointer(messages), pointer(labels), out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_keeper_free)
        self.info = ffi.new("fgi_keeper_info *")
        self._n = model.n_variables

    # -- changes -----------------------------------------------------------------------------------------------

    def set_unary(self, variables: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
        """New unary scores of these variables, one after the other."""
        error = new_error()
        rc = lib.fgi_keeper_set_unary(self._handle, len(variables), pointer(variables), pointer(scores), error)
        check(rc, error)

    def take_unary(self, model: Model, variables: NDArray[np.int32] | None = None) -> None:
        """The unary scores of these variables (None: all) as another model has them."""
        n, error = 0 if variables is None else len(variables), new_error()
        check(lib.fgi_keeper_take_unary(self._handle, model.handle, n, pointer(variables), error), error)

    def take_tables(self, model: Model, tables: NDArray[np.int32]) -> None:
        """These tables as another model of the structure that it was made with has them."""
        error = new_error()
        check(lib.fgi_keeper_take_tables(self._handle, model.handle, len(tables), pointer(tables), error), error)

    def set_constant(self, constant: float) -> None:
        error = new_error()
        check(lib.fgi_keeper_set_constant(self._handle, constant, error), error)

    def add_factor(self, factor: KeptFactor) -> int:
        """The number that it is called by from now on."""
        f, number, error = ffi.new("fgi_keeper_factor *"), ffi.new("int64_t *"), new_error()
        f.kind, f.arity, f.transposed = factor.kind, len(factor.variables), factor.transposed
        held: list[Any] = [pointer(factor.variables), pointer(factor.values)]
        f.vars, f.values = held
        f.weight, (f.p0, f.p1) = factor.weight, factor.params
        check(lib.fgi_keeper_add_factor(self._handle, f, number, error), error)
        return int(number[0])

    def remove_factor(self, number: int) -> None:
        error = new_error()
        check(lib.fgi_keeper_remove_factor(self._handle, number, error), error)

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, gap: float, work: float) -> str:
        """Works until the gap is small enough ("done"), nothing helps ("stuck") or this work is done ("running")."""
        lib.fgi_keeper_run(self._handle, gap, int(work), self.info)
        return ("running", "done", "stuck")[int(self.info.status)]

    def model(self) -> Model:
        """The model as it is now."""
        out, error = ffi.new("fgi_model **"), new_error()
        check(lib.fgi_keeper_model(self._handle, out, error), error)
        return Model(out[0])

    def labels(self) -> NDArray[np.int32]:
        labels = np.empty(self._n, np.int32)
        lib.fgi_keeper_labels(self._handle, pointer(labels))
        return labels

    def messages(self) -> NDArray[np.float64]:
        """Those of the factors that it was made with."""
        mu = np.empty(int(lib.fgi_keeper_message_size(self._handle)))
        lib.fgi_keeper_messages(self._handle, pointer(mu))
        return mu

    @property
    def memory(self) -> int:
        """Bytes, without the model."""
        return int(lib.fgi_keeper_memory(self._handle))


def batch_solve(
    model: Model,
    n: int,
    unary: NDArray[np.float64] | None,
    tables: NDArray[np.int32],
    values: NDArray[np.float64] | None,
    gap: float,
    threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    """Labels, scores, bounds and numbers of statuses of n models; see fgi_batch_solve."""
    labels = np.zeros((n, model.n_variables), np.int32)
    scores, bounds, codes = np.full(n, -np.inf), np.full(n, -np.inf), np.zeros(n, np.int32)
    batch, error = ffi.new("fgi_batch *"), new_error()
    held = [pointer(array) for array in (unary, tables, values, labels, scores, bounds, codes)]
    batch.n, batch.n_tables = n, len(tables)
    batch.unary, batch.tables, batch.values, batch.labels, batch.scores, batch.bounds, batch.statuses = held
    rc = lib.fgi_batch_solve(model.handle, batch, gap, threads, error)
    try:
        check(rc, error)
    except (ModelError, SettingsError, SolverError) as failure:
        raise type(failure)(f"model {int(error.index)}: {failure}") from None
    return labels, scores, bounds, codes
