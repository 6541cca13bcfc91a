"""gdmm (and soft-bcfw): training with factorwise oracles, block by block; the inner loops are in C."""

from __future__ import annotations

import json
from math import fsum, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.learn import Edges, Kind
from fginfer.core.learn_gdmm import (
    PENALTY_SIZE,
    GdmmHandle,
    GdmmInfo,
    GdmmSetsHandle,
    GdmmSettings,
    GdmmTokensHandle,
)
from fginfer.errors import DataError, SettingsError, SolverError
from fginfer.learn.data.examples import Ints, Reals
from fginfer.learn.learner import Learner, fits, permutation
from fginfer.learn.oracle import Oracle, losses
from fginfer.learn.run.interrupts import OutOfTime, look
from fginfer.learn.run.loop import SLICE
from fginfer.learn.run.trainer import TOO_LARGE, Measured, Trainer
from fginfer.learn.solvers.gdmm_options import GdmmOptions
from fginfer.log import thousands

MANY = 1000  # labels of tokens from which unigram oracles look at a part of them
PARTS = 4  # parts, of which one is looked at: zh_pinyin is at bcfw's objective in half of bcfw's time


class _Gdmm(Trainer):
    """What the two kinds of data share: shuffled passes and measuring."""

    feasible = False
    samples = True
    _core: GdmmHandle

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: GdmmOptions
    ) -> None:
        self.name, self.learner, self.oracle, self.C, self.options = name, learner, oracle, C, options
        if options.primal == "exact" and not learner.decodes:
            raise SettingsError("primal=exact: on problems with cycles gdmm minimises, and measures, a relaxation")
        wanted = learner.data.kind == Kind.LABELS if options.averaging is None else options.averaging
        self._averaging = bool(wanted and options.variant == "block")
        self._best: Reals | None = None  # the best of all weights measured so far
        self._best_primal, self._best_dual = inf, 0.0
        self._fresh = False  # whether the present weights are among them
        examples = learner.data.n_examples
        away = min(options.block_size, max(examples, 1)) if options.variant == "afw" else 0
        self._visits = -(-examples // away) if away else examples
        self._settings = GdmmSettings(
            C=C, block_C=options.block_C, rho=options.rho, fixed_rho=options.rho > 0, eta=self._eta(options),
            partitions=self._parts(options), brute_force=options.brute_force, sorted=options.joint == "sorted",
            seed=seed, batch=options.batch_size, averaging=self._averaging, away=away,
            search=options.search == "index", probes=options.probes or 0,
        )  # fmt: skip
        self.approximates = self._settings.eta == 0  # factors are never made to agree
        self.measuring = (2.0 + self._exact()) * (1 + self._averaging)
        self._rng = np.random.default_rng(seed)
        self._order: Ints | None = None
        self._place = 0
        self._estimate = np.inf

    def _parts(self, options: GdmmOptions) -> int:
        """Parts of the labels of which a unigram oracle looks at one."""
        if options.partitions is not None:
            return options.partitions
        data, whole = self.learner.data, options.search == "index" or options.variant == "afw"
        many = data.kind == Kind.LABELS and data.n_labels >= MANY and data.choice_begin is None
        return PARTS if many and not whole else 1

    @staticmethod
    def _eta(options: GdmmOptions) -> float:
        """The multipliers' step."""
        return options.step

    def advance(self, deadline: float) -> bool:
        if self._order is None:
            self._order, self._place = self._rng.permutation(self._visits).astype(np.int32), 0
        self._fresh = False
        self._place = self._core.run_pass(self._order, self._place, deadline)
        if self._place < len(self._order):
            return False
        self._order = None
        self._core.end_pass()
        return True

    @property
    def info(self) -> GdmmInfo:
        return self._core.info

    def averaged(self) -> Reals:
        """The weighted average of the iterates; see fgi_learn_begin_visit in csrc/learn/learn.h."""
        k, learner = self.learner.state.steps, self.learner
        out: Reals = learner.weights - learner.averages * (2.0 / (k * (k + 1.0))) ** 2
        return out

    def weights(self) -> Reals:
        """The weights to predict with: the average, or what was best when measured."""
        if self._fresh and self._best is not None:
            return self._best
        return self.averaged() if self._averaging and self.learner.state.steps else self.learner.weights.copy()

    def counters(self) -> tuple[int, int]:
        info = self.info
        return int(info.unary_calls + info.pair_calls), int(info.unary_touched + info.pair_touched)

    @property
    def products(self) -> int:
        """Multiplications of the unigram oracles so far."""
        return int(self.info.unary_products)

    def work(self) -> str:
        """What the oracles did, for the log."""
        i = self.info
        return (
            f"unigram oracles: {thousands(i.unary_calls)} calls, {thousands(i.unary_touched)} labels scored,"
            f" {thousands(i.unary_products)} multiplications; pairwise oracles: {thousands(i.pair_calls)} calls,"
            f" {thousands(i.pair_touched)} entries read"
        )

    def dual(self, deadline: float = inf) -> tuple[float, float]:
        """(dual value of a consistent point, infeasibility of the iterate)."""
        found = self._core.dual(deadline)
        if found is None:
            raise OutOfTime
        return found

    def relaxed(self, w: Reals | None = None, deadline: float = inf) -> float:
        """An upper bound on the LP-relaxed objective at w (None: at the iterate); OutOfTime at the deadline."""
        primal, share = self._relaxed(w, deadline)
        if share < 1:
            raise OutOfTime
        return primal

    def _relaxed(self, w: Reals | None, deadline: float) -> tuple[float, float]:
        """The bound, or when the deadline comes first an estimate of it; the share of the examples it was made from."""
        examples = np.random.default_rng(0).permutation(self.learner.everything)  # any beginning is a fair sample
        done, loss = 0, np.zeros(len(examples))
        while done < len(examples):
            done = self._core.losses(w, examples, done, min(deadline, clock.now() + SLICE), loss)
            if done < len(examples):
                look(inf)
                if clock.now() >= deadline:
                    break
        w, share = self.learner.weights if w is None else w, done / len(examples)
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
        if data.choice_begin is not None or data.edges == Edges.NONE:
            return True
        return float(data.token_begin[-1]) * data.n_labels**2 <= 5e8

    def measure(self, deadline: float = inf) -> Measured:
        """The measures of the best weights and the best dual point seen so far, the present ones among them."""
        infeasibility: float | None = None
        try:  # half of the time is for the objective, of which a sample is better than nothing
            dual, infeasibility = self.dual(deadline if deadline == inf else 0.5 * (clock.now() + deadline))
            self._best_dual = max(self._best_dual, dual)
        except OutOfTime:
            if self._exact():
                raise
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
            "penalty": self._core.penalty,
            **self.learner.export_center(),
        }

    def _restore_common(self, saved: dict[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(str(saved["rng"]))
        self.learner.set_state(steps=int(saved["steps"]))
        self.learner.averages[:] = fits("averages", saved["averages"], self.learner.dimension) if self._averaging else 0
        self.learner.restore_center(saved)
        penalty = fits("penalty", saved["penalty"], PENALTY_SIZE, np.float64)
        if not np.isfinite(penalty).all() or (penalty < 0).any() or not penalty[0] > 0:
            raise DataError("the penalty is none")
        self._core.penalty = penalty
        best = saved["best"]
        self._best = fits("best", best, self.learner.dimension) if len(best) else None
        self._best_primal, self._best_dual = (float(x) for x in fits("bounds", saved["bounds"], 2))
        order = saved["order"]
        self._order = permutation("order", order, self._visits) if len(order) else None
        self._place, self._estimate = int(saved["place"]), float(saved["estimate"])
        if not 0 <= self._place <= self._visits:
            raise DataError("its place does not fit the data")


def _work(saved: dict[str, Any]) -> NDArray[np.int64]:
    """The counters."""
    return fits("work", saved["work"], 5)


class GdmmTokens(_Gdmm):
    """Algorithm 1 with Algorithm 4 or 2 of Yen et al. 2016: chains, trees and graphs of tokens with labels."""

    _core: GdmmTokensHandle

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: GdmmOptions
    ) -> None:
        super().__init__(name, learner, oracle, C, seed, options)
        self._core = GdmmTokensHandle(learner, self._settings)

    def _edges(self) -> int:
        data = self.learner.data
        if data.edges == Edges.LIST and data.edge_begin is not None:
            return int(data.edge_begin[-1])
        return int(data.token_begin[-1]) - data.n_examples if data.edges == Edges.CHAIN else 0

    def _degrees(self) -> Any:
        """Edges of each token."""
        data, degree = self.learner.data, np.zeros(self.learner.data.token_begin[-1], np.int64)
        if data.edges == Edges.CHAIN:
            degree += 2
            np.subtract.at(degree, np.concatenate([data.token_begin[:-1], data.token_begin[1:] - 1]), 1)
        elif data.edge_begin is not None and data.edge_u is not None and data.edge_v is not None:
            first = np.repeat(data.token_begin[:-1], np.diff(data.edge_begin))
            np.add.at(degree, np.concatenate([first + data.edge_u, first + data.edge_v]), 1)
        return degree

    def export(self) -> dict[str, Any]:
        arrays, rng = self._core.export(int(self.learner.data.token_begin[-1]), self._edges())
        if self.options.variant == "afw":
            arrays.update(**self._core.export_vertices(self._visits), **self._core.export_step())
        return {**arrays, "core_rng": np.array(rng, np.uint64), **self._common()}

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
            slopes, greedy = int(counts[place[1]]) + 1, self._core.vertices(int(place[1]))[1]
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
        self.learner.weights[:] = fits("weights", saved["weights"], self.learner.dimension)
        self._core.restore(arrays, int(saved["core_rng"]), _work(saved))
        if self.options.variant == "afw":
            counts = fits("vertex_counts", saved["vertex_counts"], self._visits)
            size = sum(int(n) * self._core.vertices(block)[1] for block, n in enumerate(counts))
            self._core.restore_vertices(
                counts,
                fits("vertex_weights", saved["vertex_weights"], counts.sum()),
                fits("vertices", saved["vertices"], size),
            )
            self._core.restore_step(self._saved_step(saved, counts))
        self._restore_common(saved)


class GdmmSets(_Gdmm):
    """Algorithm 1 with Algorithm 3: label sets with pairwise interactions."""

    _core: GdmmSetsHandle

    def __init__(
        self, name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: GdmmOptions
    ) -> None:
        super().__init__(name, learner, oracle, C, seed, options)
        if options.variant != "block":
            raise SettingsError("label sets are trained with variant block (Algorithm 3) only")
        if options.search != "scan":
            raise SettingsError("search=index is for tokens with labels: label sets scan, or sample by partitions")
        self._core = GdmmSetsHandle(learner, self._settings, options.greedy)

    def export(self) -> dict[str, Any]:
        bounds = self._core.bounds(self.learner.data.n_labels)
        return {**self._core.export(self.learner.data.n_examples), **self._common(), "label_bounds": bounds}

    def restore(self, saved: dict[str, Any]) -> None:
        sizes = fits("sizes", saved["sizes"], 2 * self.learner.data.n_examples)
        labels, pairs = sizes[0::2].sum(), sizes[1::2].sum()
        arrays = [sizes, fits("labels", saved["labels"], labels), fits("X", saved["X"], labels)]
        arrays += [fits("pair_labels", saved["pair_labels"], 2 * pairs)]
        arrays += [fits("pair_values", saved["pair_values"], 4 * pairs)]
        arrays += [fits("losses", saved["losses"], self.learner.data.n_examples)]
        self.learner.weights[:] = fits("weights", saved["weights"], self.learner.dimension)
        self._core.restore(arrays, _work(saved))
        self._core.set_bounds(fits("label_bounds", saved["label_bounds"], self.learner.data.n_labels, np.float64))
        self._restore_common(saved)


class _Soft:
    """soft-bcfw: disagreement is penalised, multipliers never step."""

    @staticmethod
    def _eta(options: GdmmOptions) -> float:
        return 0.0


class SoftTokens(_Soft, GdmmTokens):
    """soft-bcfw of tokens."""


class SoftSets(_Soft, GdmmSets):
    """soft-bcfw of label sets."""
