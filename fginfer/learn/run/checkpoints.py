"""Where a training run stands, in a file (`checkpoint`) or in the estimator (`warm_start`), and the way back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np

from fginfer.archives import DAMAGE
from fginfer.errors import FormatError, SettingsError
from fginfer.learn.files import storage
from fginfer.learn.oracle import Oracle
from fginfer.learn.run.loop import SoFar

# Settings that make a run what it is (an estimator may list its own as `run_settings`); limits and tolerances may
# change between its parts.
_SETTINGS = ("model", "solver", "C", "fit_intercept", "pairwise", "batch_size", "solver_options")


class Checkpoints:
    """Restores a run when there is something to restore; `progress` says what it has behind it."""

    def __init__(self, estimator: Any, data: Any, solver: Any, oracle: Oracle | None, seed: int) -> None:
        self.path, self.solver, self.progress = estimator.checkpoint, solver, SoFar()
        self.oracle: Any = oracle
        self._mark = self._path_mark = ""
        self._C: Any = None
        if self.path is None and not estimator.warm_start:
            return
        settings = {name: getattr(estimator, name) for name in getattr(estimator, "run_settings", _SETTINGS)}
        whole = {**settings, "seed": seed, "oracle": type(oracle).__name__}
        self._mark = storage.fingerprint(data, whole)
        self._path_mark = storage.fingerprint(data, {**whole, "C": None})  # the same problem at any C
        self._C = settings.get("C")
        saved = getattr(estimator, "_last_run", None)
        if self.path is not None and os.path.exists(self.path):
            self._read()
        elif estimator.warm_start and saved is not None and saved[0] == self._mark:
            self._restore(saved[1])
        elif estimator.warm_start and saved is not None and saved[2:3] == (self._path_mark,) and oracle is None:
            self._move(saved[1], saved[3])

    def _move(self, arrays: dict[str, Any], C: float) -> None:
        """To another C, where the solver knows how."""
        if self.solver.movable:
            parts = {name.removeprefix("solver_"): np.array(array) for name, array in arrays.items()}
            self.solver.restore(self.solver.moved(parts, C))

    def state(self) -> tuple[Any, ...]:
        """(what it belongs to, arrays, what it belongs to at any C, its C)."""
        arrays = {f"solver_{name}": array for name, array in self.solver.export().items()}
        if hasattr(self.oracle, "export"):
            arrays.update({f"oracle_{name}": array for name, array in self.oracle.export().items()})
        return self._mark, arrays, self._path_mark, self._C

    def save(self, progress: SoFar) -> None:
        if self.path is not None:
            mark, arrays, *_ = self.state()
            storage.write(self.path, {"fingerprint": mark, "progress": asdict(progress)}, arrays)

    def _read(self) -> None:
        header, arrays = storage.read(self.path)
        if "fingerprint" not in header or "progress" not in header:
            raise FormatError("this is no checkpoint", str(self.path))
        if header["fingerprint"] != self._mark:
            raise SettingsError(f"the checkpoint {self.path} was written for other data or settings")
        try:
            self._restore(arrays)
            self.progress = SoFar.restored(header["progress"])
        except DAMAGE as error:
            raise FormatError(f"damaged checkpoint ({error})", str(self.path)) from None

    def _restore(self, arrays: dict[str, Any]) -> None:
        parts: dict[str, dict[str, Any]] = {"solver": {}, "oracle": {}}
        for name, array in arrays.items():
            owner, _, rest = name.partition("_")
            parts[owner][rest] = np.array(array)
        self.solver.restore(parts["solver"])
        if hasattr(self.oracle, "restore") and parts["oracle"]:
            self.oracle.restore(parts["oracle"])
