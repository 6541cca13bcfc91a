"""Random models, brute force and a bare loop around the C solver, for the gdmm tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.solver import STATUSES

FORMULATIONS = [lib.FGI_FORMULATION_AUTO, lib.FGI_FORMULATION_TABLES]


@dataclass
class Factor:
    variables: tuple[int, ...]
    kind: int  # 0 dense, else an implicit table
    table: NDArray[np.float64]  # expanded, weight included
    params: tuple[float, float] = (0.0, 0.0)
    weight: float = 1.0


@dataclass
class Problem:
    cards: list[int]
    unary: list[NDArray[np.float64]]
    factors: list[Factor]
    constant: float = 0.0

    def arrays(self) -> ModelArrays:
        dense = [f for f in self.factors if f.kind == 0]
        return ModelArrays(
            cards=np.array(self.cards, np.int32),
            unary=np.concatenate(self.unary) if self.unary else np.zeros(0),
            constant=self.constant,
            table_kind=np.array([f.kind for f in self.factors], np.int32),
            table_arity=np.array([len(f.variables) for f in self.factors], np.int32),
            dims=np.array([self.cards[v] for f in dense for v in f.variables], np.int32),
            params=np.array([f.params for f in self.factors], np.float64).reshape(-1),
            values=np.concatenate([f.table.ravel() / f.weight for f in dense]) if dense else np.zeros(0),
            factor_table=np.arange(len(self.factors), dtype=np.int32),
            factor_weight=np.array([f.weight for f in self.factors], np.float64),
            var_begin=np.concatenate(([0], np.cumsum([len(f.variables) for f in self.factors]))).astype(np.int64),
            vars=np.array([v for f in self.factors for v in f.variables], np.int32),
        )

    def score(self, labels: tuple[int, ...]) -> float:
        total = self.constant + sum(u[a] for u, a in zip(self.unary, labels, strict=True))
        return float(total + sum(f.table[tuple(labels[v] for v in f.variables)] for f in self.factors))

    def optimum(self) -> float:
        return max(self.score(x) for x in product(*(range(k) for k in self.cards)))


def random_problem(
    rng: np.random.Generator,
    n: int,
    n_factors: int,
    max_card: int = 4,
    max_arity: int = 4,
    forbid: float = 0.0,
    implicit: bool = False,
    min_card: int = 1,
) -> Problem:
    cards = [int(k) for k in rng.integers(min_card, max_card + 1, n)]

    def scores(shape: tuple[int, ...]) -> NDArray[np.float64]:
        t = np.round(rng.normal(size=shape) * 2, 2)
        t[rng.random(shape) < forbid] = -np.inf
        return t

    unary = [scores((k,)) for k in cards]
    factors = []
    for _ in range(n_factors if n > 1 else 0):
        arity = int(rng.integers(2, min(max_arity, n) + 1))
        variables = tuple(int(v) for v in rng.choice(n, arity, replace=False))
        shape = tuple(cards[v] for v in variables)
        weight = float(rng.choice([1.0, 0.5, 2.0]))
        kind = int(rng.integers(0, 4)) if implicit and arity == 2 else 0
        if kind == 0:
            factors.append(Factor(variables, 0, scores(shape) * weight, weight=weight))
            continue
        p0, p1 = (
            (round(float(rng.normal()), 2), round(float(rng.normal()), 2))
            if kind == 1
            else (round(float(rng.random()), 2), 2.0)
        )
        a, b = np.indices(shape)
        d = np.abs(a - b) if kind == 2 else (a - b) ** 2
        table = np.where(a == b, p0, p1) if kind == 1 else -p0 * np.minimum(d, p1)
        factors.append(Factor(variables, kind, table * weight, (p0, p1), weight))
    return Problem(cards, unary, factors, round(float(rng.normal()), 2))


def settings(**values: Any) -> Any:
    s = ffi.new("fgi_settings *", lib.fgi_settings_default())
    s.method = lib.FGI_GDMM
    for name, value in values.items():
        setattr(s, name, value)
    return s


class Run:
    """A gdmm solver on a problem or on ready arrays, driven by hand."""

    def __init__(self, problem: Problem | ModelArrays, **values: Any) -> None:
        arrays = problem.arrays() if isinstance(problem, Problem) else problem
        self.n, self.size = len(arrays.cards), int(np.sum(arrays.cards))
        self.model = arrays.build()
        out, error = ffi.new("fgi_solver **"), new_error()
        check(lib.fgi_solver_create(self.model.handle, settings(**values), out, error), error)
        self.solver = ffi.gc(out[0], lib.fgi_solver_free)
        self.info = ffi.new("fgi_info *")

    def go(self, seconds: float = -1.0, iterations: int = -1) -> Any:
        assert lib.fgi_solver_run(self.solver, seconds, iterations, self.info) == 0
        return self.info

    def finish(self, slices: int = 10**6, seconds: float = 0.05) -> str:
        for _ in range(slices):
            if self.go(seconds).status != 0:
                break
        return self.status

    @property
    def status(self) -> str:
        return STATUSES[self.info.status]

    def labels(self) -> NDArray[np.int32] | None:
        x = np.zeros(self.n, np.int32)
        return x if lib.fgi_solver_labels(self.solver, pointer(x)) else None

    def trace(self) -> list[tuple[float, float, int]]:
        n = lib.fgi_solver_trace(self.solver, 0, 0, ffi.NULL)
        events = ffi.new("fgi_event[]", max(1, n))
        lib.fgi_solver_trace(self.solver, 0, n, events)
        return [(events[k].score, events[k].bound, events[k].iteration) for k in range(n)]

    def messages(self) -> NDArray[np.float64]:
        mu = np.zeros(lib.fgi_solver_message_size(self.solver))
        assert lib.fgi_solver_messages(self.solver, pointer(mu)) == 0
        return mu

    def marginals(self) -> NDArray[np.float64]:
        x = np.zeros(self.size)
        assert lib.fgi_solver_marginals(self.solver, pointer(x)) == 1
        return x

    def warm_start(self, mu: NDArray[np.float64]) -> None:
        error = new_error()
        check(lib.fgi_solver_warm_start(self.solver, pointer(mu), error), error)

    def offer(self, labels: NDArray[np.int32]) -> None:
        error = new_error()
        check(lib.fgi_solver_offer(self.solver, pointer(labels), error), error)

    def update(self, problem: Problem) -> None:
        """The problem's present numbers, through the model: unaries and (dense, one per factor) tables."""
        error = new_error()
        unary = np.concatenate(problem.unary)
        check(lib.fgi_model_set_all_unary(self.model.handle, pointer(unary), error), error)
        for t, f in enumerate(problem.factors):
            values = np.ascontiguousarray(f.table / f.weight).ravel()
            check(lib.fgi_model_set_table(self.model.handle, t, pointer(values), error), error)
        check(lib.fgi_solver_update(self.solver, self.model.handle, error), error)
