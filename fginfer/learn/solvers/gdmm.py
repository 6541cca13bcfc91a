"""gdmm (and soft-bcfw): training with factorwise oracles, block by block; the inner loops are in C."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import fsum, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import DataError, SettingsError, SolverError
from fginfer.learn.data.examples import Ints, Reals
from fginfer.learn.learner import Learner, fits
from fginfer.learn.oracle import Oracle, losses
from fginfer.learn.run.interrupts import OutOfTime, look
from fginfer.learn.run.loop import SLICE, TOO_LARGE, Measured


@dataclass(frozen=True)
class GdmmOptions:
    """rho: penalty on disagreement between a factor and its variables (0: 1 / C). eta: multiplier step, 1 is the
    classical one (None: 1, or 0.3 with afw, which moves less in a pass); soft-bcfw is eta = 0, an approximation that
    gets better and slower with rho.

    greedy (multilabel): labels a visit may add to an example's active set. partitions: unigram oracles look at one of
    so many parts of the labels, drawn at random. brute_force: pairwise oracles scan their tables. primal: "exact"
    measures the objective with the structured oracle, "relaxed" bounds it from above with factorwise ones, "auto"
    takes the exact one where that is cheap. batch_size (tokens with labels, variant block): unigram oracles of so many
    examples choose their labels at the same weights, on all threads. averaging (variant block; None: for tokens,
    not for label sets, where it was no gain): predict with the weighted average of the iterates unless the last one was
    measured to be better.

    variant: how the duals move. "block": factor by factor (Algorithm 4; multilabel: Algorithm 3), the fastest. "afw":
    all factors of block_size examples together, by Frank-Wolfe with away steps (Algorithm 2, for which the paper proves
    its rate; block_size = all examples is its global form, best with eta about 0.1).
    """

    rho: float = 0.0
    eta: float | None = None
    block_C: float = 0.0
    partitions: int = 1
    brute_force: bool = False
    primal: str = "auto"
    greedy: int = 8
    batch_size: int = 1
    averaging: bool | None = None
    variant: str = "block"
    block_size: int = 1

    def __post_init__(self) -> None:
        if self.primal not in ("auto", "exact", "relaxed"):
            raise SettingsError(f"primal must be auto, exact or relaxed, not {self.primal!r}")
        if self.variant not in ("block", "afw"):
            raise SettingsError(f"gdmm has the variants block and afw, not {self.variant!r}")
        if self.averaging and self.variant == "afw":
            raise SettingsError("averaging goes with the variant block")
        for name in ("block_size", "partitions", "greedy", "batch_size"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name, value in (("rho", self.rho), ("eta", self.step), ("block_C", self.block_C)):
            if not 0 <= value < np.inf:
                raise SettingsError(f"{name} must be a number, 0 or more, not {value!r}")

    @property
    def step(self) -> float:
        """eta, chosen where it was left open."""
        return self.eta if self.eta is not None else 0.3 if self.variant == "afw" else 1.0


class _Gdmm:
    """What the two variants share: shuffled passes and measuring. `_core` prefixes the C functions."""

    _core = ""
    feasible = False
    samples = True

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: GdmmOptions
    ) -> None:
        self.name, self.learner, self.oracle, self.C, self.options = name, learner, oracle, C, options
        if options.primal == "exact" and not learner.decodes:
            raise SettingsError("primal=exact: on problems with cycles gdmm minimises, and measures, a relaxation")
        s = ffi.new("fgi_learn_gdmm_settings *")
        s.C, s.rho, s.eta, s.block_C = C, options.rho, options.step, options.block_C
        s.fixed_rho = options.rho > 0
        if name == "soft-bcfw":
            s.eta = 0.0
        s.partitions, s.brute_force, s.seed, s.batch = options.partitions, options.brute_force, seed, options.batch_size
        wanted = learner.data.kind == 0 if options.averaging is None else options.averaging
        self._averaging = s.averaging = bool(wanted and options.variant == "block")
        self._best: Reals | None = None  # of all weights measured so far
        self._best_primal, self._best_dual = inf, 0.0
        self._fresh = False  # whether the present weights are among them
        examples = learner.data.n_examples
        s.away = min(options.block_size, max(examples, 1)) if options.variant == "afw" else 0
        self._visits = -(-examples // s.away) if s.away else examples
        self._handle = self._create(s)
        self._rng = np.random.default_rng(seed)
        self._order: Ints | None = None
        self._place = 0
        self._estimate = np.inf

    def _create(self, settings: Any) -> Any:
        raise AssertionError("a variant creates its own core")

    def _call(self, function: str, *arguments: Any) -> None:
        error = new_error()
        check(getattr(lib, f"{self._core}_{function}")(self._handle, *arguments, error), error)

    def advance(self, deadline: float) -> bool:
        if self._order is None:
            self._order, self._place = self._rng.permutation(self._visits).astype(np.int32), 0
        self._fresh = False
        following = ffi.new("int64_t *", self._place)
        self._call("pass", pointer(self._order), len(self._order), following, deadline)
        self._place = int(following[0])
        if self._place < len(self._order):
            return False
        self._order = None
        self._call("end_pass")
        return True

    @property
    def info(self) -> Any:
        info = ffi.new("fgi_learn_gdmm_info *")
        getattr(lib, f"{self._core}_get_info")(self._handle, info)
        return info

    def averaged(self) -> Reals:
        """The weighted average of the iterates; see fgi_learn_begin_visit in csrc/learn.h."""
        k, learner = self.learner.state.steps, self.learner
        out: Reals = learner.weights - learner.averages * (2.0 / (k * (k + 1.0)))
        return out

    def weights(self) -> Reals:
        """The weights to predict with: the average, or what was best when measured."""
        if self._fresh and self._best is not None:
            return self._best
        return self.averaged() if self._averaging and self.learner.state.steps else self.learner.weights.copy()

    def counters(self) -> tuple[int, int]:
        info = self.info
        return int(info.unary_calls + info.pair_calls), int(info.unary_touched + info.pair_touched)

    def dual(self, deadline: float = inf) -> tuple[float, float]:
        """(dual value of a consistent point, infeasibility of the iterate)."""
        dual, infeasibility, done = ffi.new("double *"), ffi.new("double *"), ffi.new("int32_t *")
        self._call("dual", deadline, dual, infeasibility, done)
        if not done[0]:
            raise OutOfTime
        return float(dual[0]), float(infeasibility[0])

    def relaxed(self, w: Reals | None = None, deadline: float = inf) -> float:
        """An upper bound on the LP-relaxed objective at w (None: at the iterate); OutOfTime at the deadline."""
        primal, share = self._relaxed(w, deadline)
        if share < 1:
            raise OutOfTime
        return primal

    def _relaxed(self, w: Reals | None, deadline: float) -> tuple[float, float]:
        """The bound, or when the deadline comes first an estimate of it; the share of the examples it was made from."""
        examples = np.random.default_rng(0).permutation(self.learner.everything)  # any beginning is a fair sample
        following, loss = ffi.new("int64_t *", 0), np.zeros(len(examples))
        while following[0] < len(examples):
            slice_end = min(deadline, lib.fgi_clock() + SLICE)
            self._call(
                "losses", pointer(w), pointer(examples), len(examples), following, slice_end, pointer(loss)
            )  # fmt: skip
            if following[0] < len(examples):
                look(inf)
                if lib.fgi_clock() >= deadline:
                    break
        w, share = self.learner.weights if w is None else w, following[0] / len(examples)
        return 0.5 * float(w @ w) + self.C * fsum(loss) / share, share

    def certificate(self, deadline: float = inf) -> tuple[float, float, float]:
        """(upper bound on the LP-relaxed objective, dual value of a consistent point, infeasibility)."""
        return self.relaxed(None, deadline), *self.dual(deadline)

    def wants_certificate(self, tol: float) -> bool:
        """The factorwise losses seen on the way estimate the objective; a look is cheap (about a pass) but not free."""
        info = self.info
        if not isfinite(info.squared_norm):
            raise SolverError(TOO_LARGE)
        previous, self._estimate = self._estimate, 0.5 * info.squared_norm + self.C * info.loss_estimate
        return bool(abs(previous - self._estimate) <= 2 * tol * abs(self._estimate))

    def _exact(self) -> bool:
        """Whether the structured oracle is affordable: it reads at most a few hundred million table entries."""
        if self.options.primal != "auto":
            return self.options.primal == "exact"
        data = self.learner.data
        if not self.learner.decodes:
            return False
        if data.choice_begin is not None or data.edges == 0:
            return True
        return float(data.token_begin[-1]) * data.n_labels**2 <= 5e8

    @property
    def measuring(self) -> float:
        return (2.0 + self._exact()) * (1 + self._averaging)

    def measure(self, deadline: float = inf) -> Measured:
        """Of the best weights and the best dual point seen so far, the present ones among them."""
        dual, infeasibility = self.dual(deadline)
        self._best_dual = max(self._best_dual, dual)
        found = [self.learner.weights.copy()]
        if self._averaging and self.learner.state.steps:
            found.append(self.averaged())
        for w in found:
            primal, share = (self._primal(w, deadline), 1.0) if self._exact() else self._relaxed(w, deadline)
            if share < 1 and self._best_primal == inf:
                return Measured(primal, self._best_dual, infeasibility, share)
            if share < 1:
                raise OutOfTime
            if primal < self._best_primal:
                self._best_primal, self._best = primal, w
        self._fresh = True
        return Measured(self._best_primal, self._best_dual, infeasibility)

    def _primal(self, w: Reals, deadline: float) -> float:
        return 0.5 * float(w @ w) + self.C * float(np.sum(losses(self.learner, None, w, deadline)))

    # ---- checkpoints

    def _penalty(self, verb: str, state: Reals) -> Reals:
        getattr(lib, f"{self._core}_{verb}_penalty")(self._handle, pointer(state))
        return state

    def _common(self) -> dict[str, Any]:
        info = self.info
        return {
            "work": np.array(
                [info.unary_calls, info.pair_calls, info.unary_touched, info.pair_touched, info.unary_products],
                np.int64,
            ),
            "weights": self.learner.weights.copy(),
            "averages": self.learner.averages.copy() if self._averaging else np.zeros(0),
            "steps": np.array(self.learner.state.steps),
            "rng": np.array(json.dumps(self._rng.bit_generator.state)),
            "order": np.zeros(0, np.int32) if self._order is None else self._order,
            "place": np.array(self._place),
            "estimate": np.array(self._estimate),
            "best": np.zeros(0) if self._best is None else self._best,
            "bounds": np.array([self._best_primal, self._best_dual]),
            "penalty": self._penalty("get", np.zeros(lib.FGI_PENALTY_SIZE)),
            **self.learner.export_center(),
        }

    def _restore_common(self, saved: dict[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(str(saved["rng"]))
        self.learner.set_state(steps=int(saved["steps"]))
        self.learner.averages[:] = fits("averages", saved["averages"], self.learner.dimension) if self._averaging else 0
        self.learner.restore_center(saved)
        self._penalty("set", fits("penalty", saved["penalty"], lib.FGI_PENALTY_SIZE))
        best = saved["best"]
        self._best = fits("best", best, self.learner.dimension) if len(best) else None
        self._best_primal, self._best_dual = (float(x) for x in fits("bounds", saved["bounds"], 2))
        order = saved["order"]
        self._order = fits("order", order, self._visits) if len(order) else None
        self._place, self._estimate = int(saved["place"]), float(saved["estimate"])
        if not 0 <= self._place <= self._visits:
            raise DataError("its place does not fit the data")


class GdmmTokens(_Gdmm):
    """Algorithm 1 with Algorithm 4 or 2 of Yen et al. 2016: chains, trees and graphs of tokens with labels."""

    _core = "fgi_learn_gdmm"

    def _create(self, settings: Any) -> Any:
        out, error = ffi.new("fgi_learn_gdmm **"), new_error()
        check(lib.fgi_learn_gdmm_create(self.learner._handle, settings, out, error), error)
        return ffi.gc(out[0], lib.fgi_learn_gdmm_free)

    def _edges(self) -> int:
        data = self.learner.data
        if data.edges == 2 and data.edge_begin is not None:
            return int(data.edge_begin[-1])
        return int(data.token_begin[-1]) - data.n_examples if data.edges == 1 else 0

    def _degrees(self) -> Any:
        """Edges of each token."""
        data, degree = self.learner.data, np.zeros(self.learner.data.token_begin[-1], np.int64)
        if data.edges == 1:
            degree += 2
            np.subtract.at(degree, np.concatenate([data.token_begin[:-1], data.token_begin[1:] - 1]), 1)
        elif data.edge_begin is not None and data.edge_u is not None and data.edge_v is not None:
            first = np.repeat(data.token_begin[:-1], np.diff(data.edge_begin))
            np.add.at(degree, np.concatenate([first + data.edge_u, first + data.edge_v]), 1)
        return degree

    def export(self) -> dict[str, Any]:
        sizes = np.zeros(4, np.int64)
        lib.fgi_learn_gdmm_export_size(self._handle, pointer(sizes))
        data = self.learner.data
        n_edges = self._edges()
        arrays: dict[str, Any] = {
            "support_size": np.zeros(data.token_begin[-1], np.int32), "labels": np.zeros(sizes[0], np.int32),
            "values": np.zeros(sizes[1]), "state_size": np.zeros(n_edges, np.int32),
            "states": np.zeros(2 * sizes[2], np.int32), "betas": np.zeros(sizes[2]), "losses": np.zeros(sizes[3]),
        }  # fmt: skip
        rng = ffi.new("uint64_t *")
        lib.fgi_learn_gdmm_export(self._handle, *(pointer(a) for a in arrays.values()), rng)
        if self.options.variant == "afw":
            arrays.update(self._export_vertices())
        return {**arrays, "core_rng": np.array(rng[0], np.uint64), **self._common()}

    def _export_vertices(self) -> dict[str, Any]:
        counts, labels, width = np.zeros(self._visits, np.int32), 0, ffi.new("int64_t *")
        for block in range(self._visits):
            counts[block] = lib.fgi_learn_gdmm_away_size(self._handle, block, width)
            labels += int(counts[block]) * int(width[0])
        weights, vertices = np.zeros(counts.sum()), np.zeros(labels, np.int32)
        lib.fgi_learn_gdmm_export_away(self._handle, pointer(weights), pointer(vertices))
        slopes = np.zeros(lib.fgi_learn_gdmm_step_size(self._handle, width))
        step = {
            "step_place": np.zeros(4, np.int64), "step_values": np.zeros(5), "step_slopes": slopes,
            "step_greedy": np.zeros(int(width[0]), np.int32),
        }  # fmt: skip
        lib.fgi_learn_gdmm_export_step(self._handle, *(pointer(a) for a in step.values()))
        return {"vertex_counts": counts, "vertex_weights": weights, "vertices": vertices, **step}

    def _saved_step(self, saved: dict[str, Any], counts: Ints) -> list[NDArray[Any]]:
        """The step under way, its arrays as large as the core will take them to be."""
        place = fits("step_place", saved["step_place"], 4, np.int64)
        values = saved["step_values"]
        if values.shape != (5,) or values.dtype != np.float64:
            raise DataError("step_values does not fit the data")
        slopes = greedy = 0
        if place[0] != 0:  # a step is under way
            if place[1] >= self._visits:
                raise DataError("step_place does not fit the data")
            width = ffi.new("int64_t *")
            lib.fgi_learn_gdmm_away_size(self._handle, int(place[1]), width)
            slopes, greedy = int(counts[place[1]]) + 1, int(width[0])
        return [
            place,
            np.ascontiguousarray(values),
            fits("step_slopes", saved["step_slopes"], slopes, np.float64),
            fits("step_greedy", saved["step_greedy"], greedy, np.int32),
        ]

    def restore(self, saved: dict[str, Any]) -> None:
        data = self.learner.data
        labels, states = saved["support_size"], saved["state_size"]
        fits("support_size", labels, data.token_begin[-1])
        fits("state_size", states, self._edges())
        arrays = [labels, fits("labels", saved["labels"], labels.sum())]
        arrays += [fits("values", saved["values"], labels @ (1 + 2 * self._degrees())), states]
        arrays += [fits("states", saved["states"], 2 * states.sum()), fits("betas", saved["betas"], states.sum())]
        arrays += [fits("losses", saved["losses"], data.n_examples)]
        work = fits("work", np.append(saved["work"], 0)[:5] if len(saved["work"]) == 4 else saved["work"], 5)
        self.learner.weights[:] = fits("weights", saved["weights"], self.learner.dimension)
        self._call("import", *(pointer(a) for a in arrays), int(saved["core_rng"]), pointer(work))
        if self.options.variant == "afw":
            counts, width = fits("vertex_counts", saved["vertex_counts"], self._visits), ffi.new("int64_t *")
            labels = 0
            for block in range(self._visits):
                lib.fgi_learn_gdmm_away_size(self._handle, block, width)
                labels += int(counts[block]) * int(width[0])
            vertices = [counts, fits("vertex_weights", saved["vertex_weights"], counts.sum())]
            vertices += [fits("vertices", saved["vertices"], labels)]
            self._call("import_away", *(pointer(a) for a in vertices))
            self._call("import_step", *(pointer(a) for a in self._saved_step(saved, counts)))
        self._restore_common(saved)


class GdmmSets(_Gdmm):
    """Algorithm 1 with Algorithm 3: label sets with pairwise interactions."""

    _core = "fgi_learn_gdmm_sets"

    def _create(self, settings: Any) -> Any:
        if self.options.variant != "block":
            raise SettingsError("label sets are trained with variant block (Algorithm 3) only")
        out, error = ffi.new("fgi_learn_gdmm_sets **"), new_error()
        check(lib.fgi_learn_gdmm_sets_create(self.learner._handle, settings, self.options.greedy, out, error), error)
        return ffi.gc(out[0], lib.fgi_learn_gdmm_sets_free)

    def export(self) -> dict[str, Any]:
        n, m = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.fgi_learn_gdmm_sets_export_size(self._handle, n, m)
        examples = self.learner.data.n_examples
        arrays: dict[str, Any] = {
            "sizes": np.zeros(2 * examples, np.int32), "labels": np.zeros(n[0], np.int32), "X": np.zeros(n[0]),
            "pair_labels": np.zeros(2 * m[0], np.int32), "pair_values": np.zeros(4 * m[0]),
            "losses": np.zeros(examples),
        }  # fmt: skip
        lib.fgi_learn_gdmm_sets_export(self._handle, *(pointer(a) for a in arrays.values()))
        return {**arrays, **self._common()}

    def restore(self, saved: dict[str, Any]) -> None:
        sizes = fits("sizes", saved["sizes"], 2 * self.learner.data.n_examples)
        labels, pairs = sizes[0::2].sum(), sizes[1::2].sum()
        arrays = [sizes, fits("labels", saved["labels"], labels), fits("X", saved["X"], labels)]
        arrays += [fits("pair_labels", saved["pair_labels"], 2 * pairs)]
        arrays += [fits("pair_values", saved["pair_values"], 4 * pairs)]
        arrays += [fits("losses", saved["losses"], self.learner.data.n_examples)]
        work = fits("work", np.append(saved["work"], 0)[:5] if len(saved["work"]) == 4 else saved["work"], 5)
        self.learner.weights[:] = fits("weights", saved["weights"], self.learner.dimension)
        self._call("import", *(pointer(a) for a in arrays), pointer(work))
        self._restore_common(saved)
