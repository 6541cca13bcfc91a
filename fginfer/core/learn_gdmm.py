"""Handles on gdmm for learning (csrc/include/fginfer_learn.h): tokens with labels, and label sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.learn import Ints, LearnerHandle, Reals, filled

PENALTY_SIZE = int(lib.FGI_PENALTY_SIZE)


class GdmmSettings(NamedTuple):
    """fgi_learn_gdmm_settings."""

    C: float
    block_C: float
    rho: float
    fixed_rho: bool
    eta: float
    partitions: int
    brute_force: bool
    sorted: bool
    seed: int
    batch: int
    averaging: bool
    search: bool
    probes: int
    away: int


class GdmmInfo(NamedTuple):
    """fgi_learn_gdmm_info."""

    unary_calls: int
    pair_calls: int
    unary_touched: int
    pair_touched: int
    active_labels: float
    active_states: float
    loss_estimate: float
    squared_norm: float
    rho: float
    memory: int
    unary_products: int


class _Functions(NamedTuple):
    """What both kinds have, under names of their own."""

    free: Any
    run: Any
    end_pass: Any
    losses: Any
    dual: Any
    info: Any
    get_penalty: Any
    set_penalty: Any


class GdmmHandle:
    """What tokens and label sets share."""

    _core: _Functions

    def __init__(self, learner: LearnerHandle, made: Any) -> None:
        self._learner, self._handle = learner, ffi.gc(made, self._core.free)

    def _check(self, function: Any, *arguments: Any) -> None:
        error = new_error()
        check(function(self._handle, *arguments, error), error)

    def run_pass(self, order: Ints, start: int, deadline: float) -> int:
        """Visits order[start:] until the deadline (clock.now); returns where it stopped."""
        following = ffi.new("int64_t *", start)
        self._check(self._core.run, pointer(order), len(order), following, deadline)
        return int(following[0])

    def end_pass(self) -> None:
        self._check(self._core.end_pass)

    def losses(self, w: Reals | None, examples: Ints, start: int, deadline: float, out: Reals) -> int:
        """Upper bounds on the losses of examples[start:] into `out`; returns where it stopped. w stays alive until it
        has got to the end."""
        following = ffi.new("int64_t *", start)
        self._check(
            self._core.losses, pointer(w), pointer(examples), len(examples), following, deadline, pointer(out)
        )  # fmt: skip
        return int(following[0])

    def dual(self, deadline: float) -> tuple[float, float] | None:
        """(dual value of a consistent point, infeasibility of the iterate); None when the deadline came first."""
        dual, infeasibility, done = ffi.new("double *"), ffi.new("double *"), ffi.new("int32_t *")
        self._check(self._core.dual, deadline, dual, infeasibility, done)
        return (float(dual[0]), float(infeasibility[0])) if done[0] else None

    @property
    def info(self) -> GdmmInfo:
        info = ffi.new("fgi_learn_gdmm_info *")
        self._core.info(self._handle, info)
        return GdmmInfo(*(getattr(info, name) for name in GdmmInfo._fields))

    @property
    def penalty(self) -> Reals:
        """rho and the residuals that balance it."""
        state = np.zeros(PENALTY_SIZE)
        self._core.get_penalty(self._handle, pointer(state))
        return state

    @penalty.setter
    def penalty(self, state: Reals) -> None:
        self._core.set_penalty(self._handle, pointer(state))


class GdmmTokensHandle(GdmmHandle):
    """Algorithm 1 with Algorithm 4, or with Algorithm 2 (settings.away > 0), of Yen et al. 2016."""

    _core = _Functions(
        lib.fgi_learn_gdmm_free, lib.fgi_learn_gdmm_pass, lib.fgi_learn_gdmm_end_pass, lib.fgi_learn_gdmm_losses,
        lib.fgi_learn_gdmm_dual, lib.fgi_learn_gdmm_get_info, lib.fgi_learn_gdmm_get_penalty,
        lib.fgi_learn_gdmm_set_penalty,
    )  # fmt: skip

    def __init__(self, learner: LearnerHandle, settings: GdmmSettings) -> None:
        given, _ = filled("fgi_learn_gdmm_settings", settings._asdict())
        out, error = ffi.new("fgi_learn_gdmm **"), new_error()
        check(lib.fgi_learn_gdmm_create(learner.handle, given, out, error), error)
        super().__init__(learner, out[0])

    def export(self, n_tokens: int, n_edges: int) -> tuple[dict[str, NDArray[Any]], int]:
        """(supports, active states and losses; the state of the random numbers)."""
        sizes, rng = np.zeros(4, np.int64), ffi.new("uint64_t *")
        lib.fgi_learn_gdmm_export_size(self._handle, pointer(sizes))
        arrays: dict[str, NDArray[Any]] = {
            "support_size": np.zeros(n_tokens, np.int32), "labels": np.zeros(sizes[0], np.int32),
            "values": np.zeros(sizes[1]), "state_size": np.zeros(n_edges, np.int32),
            "states": np.zeros(2 * sizes[2], np.int32), "betas": np.zeros(sizes[2]), "losses": np.zeros(sizes[3]),
        }  # fmt: skip
        lib.fgi_learn_gdmm_export(self._handle, *(pointer(a) for a in arrays.values()), rng)
        return arrays, int(rng[0])

    def restore(self, arrays: Iterable[NDArray[Any]], rng: int, work: NDArray[np.int64]) -> None:
        """As export() gives them, in that order; work: calls, entries and products, as in the info."""
        self._check(lib.fgi_learn_gdmm_import, *(pointer(a) for a in arrays), rng, pointer(work))

    def vertices(self, block: int) -> tuple[int, int]:
        """How many vertices a block under away steps has, and labels each of them."""
        width = ffi.new("int64_t *")
        count = int(lib.fgi_learn_gdmm_away_size(self._handle, block, width))
        return count, int(width[0])

    def export_vertices(self, n_blocks: int) -> dict[str, NDArray[Any]]:
        sizes = [self.vertices(block) for block in range(n_blocks)]
        counts = np.array([count for count, _ in sizes], np.int32)
        weights = np.zeros(counts.sum())
        labels = np.zeros(sum(count * width for count, width in sizes), np.int32)
        lib.fgi_learn_gdmm_export_away(self._handle, pointer(weights), pointer(labels))
        return {"vertex_counts": counts, "vertex_weights": weights, "vertices": labels}

    def restore_vertices(self, counts: Ints, weights: Reals, labels: Ints) -> None:
        self._check(lib.fgi_learn_gdmm_import_away, pointer(counts), pointer(weights), pointer(labels))

    def export_step(self) -> dict[str, NDArray[Any]]:
        """The step that a deadline cut short, if any."""
        width = ffi.new("int64_t *")
        slopes = np.zeros(lib.fgi_learn_gdmm_step_size(self._handle, width))
        step = {
            "step_place": np.zeros(4, np.int64), "step_values": np.zeros(5), "step_slopes": slopes,
            "step_greedy": np.zeros(int(width[0]), np.int32),
        }  # fmt: skip
        lib.fgi_learn_gdmm_export_step(self._handle, *(pointer(a) for a in step.values()))
        return step

    def restore_step(self, arrays: Iterable[NDArray[Any]]) -> None:
        self._check(lib.fgi_learn_gdmm_import_step, *(pointer(a) for a in arrays))


class GdmmSetsHandle(GdmmHandle):
    """Algorithm 1 with Algorithm 3: label sets with pairwise interactions."""

    _core = _Functions(
        lib.fgi_learn_gdmm_sets_free, lib.fgi_learn_gdmm_sets_pass, lib.fgi_learn_gdmm_sets_end_pass,
        lib.fgi_learn_gdmm_sets_losses, lib.fgi_learn_gdmm_sets_dual, lib.fgi_learn_gdmm_sets_get_info,
        lib.fgi_learn_gdmm_sets_get_penalty, lib.fgi_learn_gdmm_sets_set_penalty,
    )  # fmt: skip

    def __init__(self, learner: LearnerHandle, settings: GdmmSettings, greedy: int) -> None:
        given, _ = filled("fgi_learn_gdmm_settings", settings._asdict())
        out, error = ffi.new("fgi_learn_gdmm_sets **"), new_error()
        check(lib.fgi_learn_gdmm_sets_create(learner.handle, given, greedy, out, error), error)
        super().__init__(learner, out[0])

    def export(self, n_examples: int) -> dict[str, NDArray[Any]]:
        n, m = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.fgi_learn_gdmm_sets_export_size(self._handle, n, m)
        arrays: dict[str, NDArray[Any]] = {
            "sizes": np.zeros(2 * n_examples, np.int32), "labels": np.zeros(n[0], np.int32), "X": np.zeros(n[0]),
            "pair_labels": np.zeros(2 * m[0], np.int32), "pair_values": np.zeros(4 * m[0]),
            "losses": np.zeros(n_examples),
        }  # fmt: skip
        lib.fgi_learn_gdmm_sets_export(self._handle, *(pointer(a) for a in arrays.values()))
        return arrays

    def restore(self, arrays: Iterable[NDArray[Any]], work: NDArray[np.int64]) -> None:
        self._check(lib.fgi_learn_gdmm_sets_import, *(pointer(a) for a in arrays), pointer(work))

    def bounds(self, n_labels: int) -> Reals:
        """What the joint oracle knows of each label."""
        out = np.zeros(n_labels)
        lib.fgi_learn_gdmm_sets_get_bounds(self._handle, pointer(out))
        return out

    def set_bounds(self, bounds: Reals) -> None:
        lib.fgi_learn_gdmm_sets_set_bounds(self._handle, pointer(bounds))
