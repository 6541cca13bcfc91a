"""Model: a factor graph as the C core has it. Structure never changes; numbers are copied on write."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError


class Model:
    """Owns a C model, which is freed with it. Label arrays are int32 and contiguous; the core checks their ranges."""

    def __init__(self, pointer_to_model: Any) -> None:
        if pointer_to_model == ffi.NULL:
            raise MemoryError("out of memory")
        self.handle = ffi.gc(pointer_to_model, lib.fgi_model_free)

    @cached_property
    def cards(self) -> NDArray[np.int32]:
        """Labels per variable."""
        cards = np.zeros(self.n_variables, np.int32)
        lib.fgi_model_cards(self.handle, pointer(cards))
        cards.setflags(write=False)
        return cards

    @property
    def n_variables(self) -> int:
        return int(lib.fgi_model_variables(self.handle))

    @property
    def n_factors(self) -> int:
        """Factors over two or more variables."""
        return int(lib.fgi_model_factors(self.handle))

    @cached_property
    def n_labels(self) -> int:
        """Labels of all variables together."""
        return int(self.cards.sum(dtype=np.int64))

    @cached_property
    def states(self) -> float:
        """States of all factors: what a pass over all tables, none of them shared, would look at."""
        return float(lib.fgi_model_states(self.handle))

    @cached_property
    def pass_work(self) -> float:
        """What a sweep over all factors reads: the states of dense tables, the labels of implicit ones."""
        return float(lib.fgi_model_pass_work(self.handle))

    def unary_labels(self) -> NDArray[np.int32]:
        """The best labels by the unaries alone: the labeling that costs nothing."""
        labels = np.zeros(self.n_variables, np.int32)
        lib.fgi_model_unary_labels(self.handle, pointer(labels))
        return labels

    @property
    def trivial_bound(self) -> float:
        """The sum of the maxima of all potentials: the bound that costs a pass over the factors."""
        return float(lib.fgi_model_trivial_bound(self.handle))

    @property
    def attraction(self) -> float:
        """The part of all factors that is binary and rewards both labels being 1."""
        return float(lib.fgi_model_attraction(self.handle))

    @property
    def max_arity(self) -> int:
        """Variables of the largest factor; 0 where there is none."""
        return int(lib.fgi_model_max_arity(self.handle))

    @property
    def entries(self) -> int:
        """Entries of the dense tables, shared ones once."""
        return int(lib.fgi_model_entries(self.handle))

    @property
    def constant(self) -> float:
        return float(lib.fgi_model_constant(self.handle))

    @cached_property
    def unit(self) -> float:
        """What gaps are relative to where scores are small: see Result."""
        return float(lib.fgi_model_unit(self.handle))

    def floor(self, bound: float) -> float:
        """The largest score that can occur up to the bound, where scores are counted in exact steps; else the bound."""
        return float(lib.fgi_model_floor(self.handle, bound))

    def normalised(self) -> tuple[Model, int]:
        """The same model with all scores times 2^-exponent, and the exponent: 0 unless scores are extreme.

        ModelError where no unit would do: scores too far apart for doubles.
        """
        out, exponent, error = ffi.new("fgi_model **"), ffi.new("int *"), new_error()
        check(lib.fgi_model_normalised(self.handle, out, exponent, error), error)
        return Model(out[0]), int(exponent[0])

    @property
    def has_unit(self) -> bool:
        """Whether there is a unit that solvers can work in; a part of a model may have none where the model has."""
        try:
            self.normalised()
        except ModelError:
            return False
        return True

    @property
    def memory(self) -> int:
        """Bytes."""
        return int(lib.fgi_model_memory(self.handle))

    def score(self, labels: NDArray[np.int32]) -> float:
        """Summed from the tables; -inf if a state is forbidden."""
        out, error = ffi.new("double *"), new_error()
        check(lib.fgi_model_score(self.handle, pointer(labels), out, error), error, bad_argument=ModelError)
        return float(out[0])

    def factor_scores(self, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        out, error = np.zeros(self.n_factors), new_error()
        rc = lib.fgi_model_factor_scores(self.handle, pointer(labels), pointer(out), error)
        check(rc, error, bad_argument=ModelError)
        return out

    def snapshot(self) -> Model:
        """The present numbers, which later changes of this model do not touch. Costs no copy until then."""
        return Model(lib.fgi_model_snapshot(self.handle))

    def same_structure(self, other: Model) -> bool:
        return bool(lib.fgi_model_same_structure(self.handle, other.handle))

    def plain(self) -> Model:
        """A snapshot without leftovers: what solvers see."""
        return Model(lib.fgi_model_plain(self.handle))

    def take_leftovers(self, other: Model) -> None:
        """Those of another model, whose variables are the first ones here."""
        lib.fgi_model_take_leftovers(self.handle, other.handle)

    @property
    def has_leftovers(self) -> bool:
        """Whether sums of unary scores were rounded; what they lost counts in scores."""
        return bool(lib.fgi_model_has_leftovers(self.handle))

    @property
    def leftover_bound(self) -> float:
        """By how much a score can lie above that of the same labeling in the plain model."""
        return float(lib.fgi_model_leftover_bound(self.handle))

    def condition(self, variables: NDArray[np.int32], labels: NDArray[np.int32]) -> Model:
        """What is left when some variables are fixed. Sums are exact: what is rounded becomes leftovers."""
        out, error = ffi.new("fgi_model **"), new_error()
        given = len(variables), pointer(variables), pointer(labels)
        check(lib.fgi_model_condition(self.handle, *given, out, error), error, bad_argument=ModelError)
        return Model(out[0])

    def narrow(self, labels: NDArray[np.int32], most: int) -> tuple[Model, NDArray[np.int32]]:
        """Only the labels that promise most beside a labeling: at most so many a variable, and which they are (a row a
        variable, ascending, then -1)."""
        out, error, kept = ffi.new("fgi_model **"), new_error(), np.empty((self.n_variables, most), np.int32)
        rc = lib.fgi_model_narrow(self.handle, pointer(labels), most, out, pointer(kept), error)
        check(rc, error, bad_argument=ModelError)
        return Model(out[0]), kept

    # -- new numbers -------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        for known in ("unit", "pass_work"):
            self.__dict__.pop(known, None)

    def set_unary(self, variable: int, scores: NDArray[np.float64]) -> None:
        error = new_error()
        self._changed()
        check(lib.fgi_model_set_unary(self.handle, variable, pointer(scores), error), error, bad_argument=ModelError)

    def set_some_unary(self, variables: NDArray[np.int32], scores: NDArray[np.float64]) -> None:
        """Those of these variables, one after the other: all of them or none."""
        error = new_error()
        self._changed()
        code = lib.fgi_model_set_some_unary(self.handle, len(variables), pointer(variables), pointer(scores), error)
        check(code, error, bad_argument=ModelError)

    def set_all_unary(self, scores: NDArray[np.float64]) -> None:
        error = new_error()
        self._changed()
        check(lib.fgi_model_set_all_unary(self.handle, pointer(scores), error), error, bad_argument=ModelError)

    def set_tables(self, tables: NDArray[np.int32], values: NDArray[np.float64]) -> None:
        """The values of these dense tables, one after the other: as many as they have entries."""
        error = new_error()
        self._changed()
        code = lib.fgi_model_set_tables(self.handle, len(tables), pointer(tables), pointer(values), error)
        check(code, error, bad_argument=ModelError)

    def set_table(self, table: int, values: NDArray[np.float64]) -> None:
        error = new_error()
        self._changed()
        check(lib.fgi_model_set_table(self.handle, table, pointer(values), error), error, bad_argument=ModelError)
