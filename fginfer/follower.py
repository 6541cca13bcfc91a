"""Follower: how a solver sees its graph, and what it does when the graph has changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SolverError
from fginfer.exact_scores import ExactScores
from fginfer.graph import FactorGraph
from fginfer.journal import Changes
from fginfer.labelings import check_labels, check_range
from fginfer.lower import Lowered, lower_for_solving
from fginfer.names import Names
from fginfer.result import Result


class Follower:
    """What Solver inherits: an engine on the numbers, constraints, names and cutoff that the graph had when it was
    looked at last. Whatever happens to the graph meanwhile waits for the next look."""

    graph: FactorGraph
    settings: Settings  # its cutoff is that of the engine
    _engine: Any
    _least: float  # the cutoff that the solver was given
    _proves: bool  # whether there is a proof to be written
    _unproven: str | None = None  # why there can be none

    def _take(self, graph: FactorGraph) -> None:
        """Makes an engine on the graph as it is now."""
        self.graph, self._mark = graph, graph.journal.mark()
        self._names: Names | None = graph.shared_names() if graph.names else None
        self._cutoff = max(self._least, graph.cutoff)
        self._lowered: Lowered | None = self._lower(graph) if graph.rules else None
        cutoff = self._cutoff if self._lowered is None else self._lowered.cutoff(self._cutoff)
        self.settings = dataclasses.replace(self.settings, cutoff=cutoff)
        self._begin_engine()

    def _lower(self, graph: FactorGraph) -> Lowered:
        """Proofs are about all of the graph; a labeling is found with less, where tables cannot hold all of it, too."""
        if self._proves:
            try:
                return graph.lowered()
            except SolverError as error:
                self._unproven = str(error)
        return lower_for_solving(graph)

    def _begin_engine(self) -> None:
        """Methods see no leftovers: `_exact` puts them back."""
        self._model: Model = self._tables.table_snapshot()
        self._exact: ExactScores | None = None
        tables, settings = self._tables, self.settings
        if self._model.has_leftovers:
            self._exact = ExactScores(self._model, settings.cutoff, settings.gap)
            tables, settings = self._plain(), dataclasses.replace(settings, cutoff=self._exact.plain_cutoff)
        self._engine = self._make_engine(tables, settings)

    def _make_engine(self, tables: FactorGraph, settings: Settings) -> Any:
        raise NotImplementedError

    @property
    def _tables(self) -> FactorGraph:
        """The graph, with tables in the place of constraints."""
        return self.graph if self._lowered is None else self._lowered.graph

    def _plain(self) -> FactorGraph:
        return FactorGraph.from_model(self._model.plain(), self._tables.n_factors)

    # -- labelings ---------------------------------------------------------------------------------------------

    def _check_labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the variables that the engine knows."""
        cards = self._model.cards if self._lowered is None else self._lowered.cards
        return check_range(check_labels(labels, cards, self._names), cards, self._names)

    def _offer(self, labels: ArrayLike) -> None:
        x = self._check_labels(labels)
        self._engine.offer(x if self._lowered is None else self._lowered.complete(x))

    def _for_graph(self, labels: NDArray[np.int32] | None) -> NDArray[np.int32] | None:
        """Labels for the variables that the graph has now: those that have come get their first label. None: variables
        have gone, or are other ones."""
        if labels is None or len(labels) > self.graph.n_variables:
            return None
        out = np.append(labels, np.zeros(self.graph.n_variables - len(labels), np.int32)).astype(np.int32)
        return out if bool((out < self.graph.cards).all()) else None

    # -- changes -----------------------------------------------------------------------------------------------

    def _is_up_to_date(self) -> bool:
        changes = self.graph.journal.since(self._mark)
        return changes is not None and not changes.entries and self._cutoff == max(self._least, self.graph.cutoff)

    def _look_again(self) -> None:
        """Takes what has changed, at a cost that follows the change where the method can do that. What the method
        refuses waits for the next look; until then all is as before."""
        before = dict(vars(self))
        try:
            self._take_changes(self.graph)
        except BaseException:
            vars(self).update(before)
            raise

    def _take_changes(self, graph: FactorGraph) -> None:
        changes, self._mark = graph.journal.since(self._mark), graph.journal.mark()
        self._names = graph.shared_names() if graph.names else None
        if max(self._least, graph.cutoff) != self._cutoff:
            self._start_anew()
        elif self._lowered is not None or graph.rules:
            self._update_lowered()
        elif changes is None or not self._follow(changes):
            self._update_engine()

    def _follow(self, changes: Changes) -> bool:
        """Lets a method that can do so take nothing but the changes."""
        follow = getattr(self._engine, "follow", None)  # not every engine has one
        return follow is not None and self._exact is None and bool(follow(self.graph, changes))

    def _update_lowered(self) -> None:
        now = None if self._lowered is None else self._lowered.updated(self.graph)
        if now is None:
            self._start_anew()
        else:
            self._lowered = now
            self._update_engine()

    def _update_engine(self) -> None:
        engine, model = self._engine, self._tables.table_snapshot()
        before = self._model if self._exact is None else self._exact.model
        if not model.same_structure(before):
            self._start_anew()
            return
        self._model = model
        if self._exact is None and not model.has_leftovers:
            engine.update(self._tables)
            return
        if self._exact is not None and self.settings.cutoff == -np.inf:
            engine.update(self._plain())
            self._exact = ExactScores(model, -np.inf, self.settings.gap)
            return
        labels = engine.labels() if isinstance(engine, NativeEngine) else engine.now().labels
        self._begin_engine()  # the cutoff that it is told may be another one
        if labels is not None:
            self._engine.offer(labels)

    def _start_anew(self) -> None:
        """On another structure or with another cutoff, from the labels so far."""
        labels = self._for_graph(self._found().labels)
        self.settings = dataclasses.replace(self.settings, start_time=clock.now())
        self._take(self.graph)
        if labels is not None:
            self._offer(labels)

    def _found(self) -> Result:
        """The best labeling so far, as the graph has it."""
        raise NotImplementedError
