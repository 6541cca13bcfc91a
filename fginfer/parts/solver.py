"""PartsSolver: a Solver whose model is in parts."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.budget import default_memory
from fginfer.cluster import client_of
from fginfer.core.arrays import ModelArrays
from fginfer.engine import Settings, check_settings
from fginfer.errors import SettingsError
from fginfer.graph import FactorGraph
from fginfer.lower import Lowered
from fginfer.options import is_number, unknown_option
from fginfer.parts.crew import PartsCrew, SerialCrew, ThreadCrew, TurnsCrew, available_threads
from fginfer.parts.engine import PartsEngine
from fginfer.parts.hands import METHODS, default_sweeps
from fginfer.parts.keep import Keeper
from fginfer.parts.plan import PartsPlan
from fginfer.parts.sharded import Sharded
from fginfer.parts.split import Cut, owners_of, with_auxiliary
from fginfer.result import Result
from fginfer.solver import Solver

_OPTIONS = {"trws": ("precision",)}  # other methods take none


class PartsSolver(Solver):
    """Like Solver, for a model in parts; the method is that of the parts."""

    def __init__(
        self, graph: FactorGraph | Sharded, plan: PartsPlan, method: str | None = None, **settings: Any
    ) -> None:
        plan.check()
        self._method = "trws" if method is None else method
        if self._method not in METHODS:
            raise SettingsError(f"the parts of a model are solved by {', '.join(METHODS)}, not by {method}")
        memory = _memory(settings.pop("memory", None), isinstance(graph, Sharded) and plan.client is None)
        self._cluster = ExitStack()
        self.plan = plan if memory is None else replace(plan, memory=memory)
        if plan.client is not None:
            opened = self._cluster.enter_context(client_of(plan.client, plan.security))
            self.plan = replace(self.plan, client=opened)
        try:
            self._begin(graph, settings)
        except BaseException:
            self._cluster.close()
            raise

    def _begin(self, graph: Any, settings: dict[str, Any]) -> None:
        super().__init__(graph, self._method, **settings)

    def close(self) -> None:
        """Frees the parts, wherever they are."""
        super().close()
        self._cluster.close()

    @staticmethod
    def _check_graph(graph: Any) -> None:
        if not isinstance(graph, Sharded):
            Solver._check_graph(graph)

    def _check_labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        graph: Any = self.graph
        return graph.check_labels(labels) if isinstance(graph, Sharded) else super()._check_labels(labels)

    def _lower(self, graph: FactorGraph) -> Lowered:
        """All constraints become tables, of which each part has some."""
        return graph.lowered()

    def _begin_engine(self) -> None:
        graph: Any = self.graph
        if isinstance(graph, Sharded):
            self._engine = self._sharded_engine(graph)
        else:
            super()._begin_engine()

    def _sharded_engine(self, graph: Sharded) -> Any:
        if self.plan.parts not in (None, graph.n_parts):
            raise SettingsError(f"the model has {graph.n_parts} parts already; parts= is for models in one piece")
        self._exact = None
        check_parts_options(self.settings)
        crew = make_crew(self.plan, graph.n_parts, graph.shard, self.settings, is_sharded=True)
        engine = make_engine(self.plan, crew, self.settings, None, {})
        facts = engine.rounds.facts
        graph.n_variables, graph.n_factors = engine.rounds.seams.n_variables, sum(f.n_factors for f in facts)
        graph.max_labels, graph.table_entries = max(f.max_labels for f in facts), sum(f.table_entries for f in facts)
        return engine

    def _make_engine(self, graph: FactorGraph, settings: Settings) -> Any:
        check_parts_options(settings)
        arrays = ModelArrays.of_model(graph.snapshot())
        parts = self._n_parts(graph, settings)
        if self._lowered is not None:
            parts = with_auxiliary(arrays, parts, len(self._lowered.cards))
        cut = Cut(arrays, owners_of(arrays, parts))
        model = graph.snapshot()
        crew = make_crew(self.plan, cut.n_parts, cut.shard, settings)
        return make_engine(self.plan, crew, settings, model, {"factors": model.n_factors})

    def _n_parts(self, graph: FactorGraph, settings: Settings) -> Any:
        if self.plan.parts is not None:
            return self.plan.parts
        workers = 0 if self.plan.client is None else len(self.plan.client.nthreads())
        return min(max(1, graph.n_variables), max(2, settings.threads, workers))

    def result(self, trace: bool = True, dual: bool = True) -> Result:
        """The best labeling and bound so far."""
        return replace(super().result(trace, dual), method="parts")

    def seconds_to_copy(self) -> float:
        return 0.0


def _memory(given: Any, takes_turns: bool) -> float | None:
    """Bytes for the parts that take turns."""
    if given is None:
        return None
    if not takes_turns:
        raise SettingsError("memory is for parts that take turns in one process: a Sharded model without client")
    if not is_number(given) or not 0 < given < inf:
        raise SettingsError(f"memory must be a number of bytes above 0, not {given!r}")
    return float(given)


def check_parts_options(settings: Settings) -> None:
    """SettingsError for what the parts' solvers do not take."""
    check_settings(settings)
    for name in settings.options:
        known = _OPTIONS.get(settings.method, ())
        if name not in known:
            raise unknown_option(name, f"{settings.method} in parts", known)


def make_crew(plan: PartsPlan, n_parts: int, shard: Any, settings: Settings, is_sharded: bool = False) -> PartsCrew:
    """The crew that the plan asks for."""
    options = {"method": settings.method, **settings.options}
    if settings.method != "gdmm":
        options = {"precision": "double", **options}
    if plan.client is not None:
        from fginfer.parts.dask_crew import DaskCrew

        return DaskCrew(plan.client, n_parts, shard, options, travels=is_sharded)
    if is_sharded:
        memory = default_memory() if plan.memory is None else plan.memory
        return TurnsCrew(n_parts, shard, {**options, "threads": settings.threads}, memory)
    threads = available_threads(settings.threads)
    if threads > 1 and n_parts > 1:
        return ThreadCrew(n_parts, shard, options, threads)
    return SerialCrew(n_parts, shard, options)


def make_engine(plan: PartsPlan, crew: PartsCrew, settings: Settings, model: Any, mark: dict[str, int]) -> PartsEngine:
    """The engine. Where parts can be lost, or a checkpoint is wanted, rounds are kept."""
    keeper, sweeps = None, default_sweeps(settings.method) if plan.sweeps is None else plan.sweeps
    try:
        if plan.checkpoint is not None or crew.can_lose:
            mark = {
                **mark,
                "parts": crew.n_parts,
                "sweeps": sweeps,
                "method": METHODS.index(settings.method),
                "seed": settings.seed % (1 << 62),
            }
            keeper = Keeper(plan.checkpoint, plan.keep_every, mark, plan.resume)
        engine = PartsEngine(crew, settings, sweeps, keeper, model)
        engine.prepare()
    except BaseException:
        crew.close()
        if keeper is not None:
            keeper.close()
        raise
    assert settings.cutoff < inf
    return engine
