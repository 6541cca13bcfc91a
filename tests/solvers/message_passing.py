"""Plain numpy twins of the message-passing solvers, and a thin driver of the C ones. Slow, short, independent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.core.door import check, ffi, lib, new_error, pointer

Array = NDArray[np.float64]


@dataclass
class Dense:
    """A model with every factor expanded: what the references work on."""

    cards: list[int]
    unary: list[Array]
    factors: list[tuple[tuple[int, ...], Array]] = field(default_factory=list)
    constant: float = 0.0

    def arrays(self) -> ModelArrays:
        arities = [t.ndim for _, t in self.factors]
        return ModelArrays(
            cards=np.array(self.cards, np.int32),
            unary=np.concatenate(self.unary) if self.unary else np.zeros(0),
            constant=self.constant,
            table_arity=np.array(arities, np.int32),
            dims=np.array([d for _, t in self.factors for d in t.shape], np.int32),
            values=np.concatenate([t.ravel() for _, t in self.factors]) if self.factors else np.zeros(0),
            factor_table=np.arange(len(self.factors), dtype=np.int32),
            var_begin=np.concatenate(([0], np.cumsum(arities))).astype(np.int64),
            vars=np.array([i for v, _ in self.factors for i in v], np.int32),
        )

    def score(self, labels: Any) -> float:
        total = self.constant + sum(float(u[x]) for u, x in zip(self.unary, labels, strict=True))
        return total + sum(float(t[tuple(labels[i] for i in v)]) for v, t in self.factors)

    def best(self) -> float:
        return max(self.score(x) for x in itertools.product(*map(range, self.cards)))

    def dual(self, mu: Array) -> float:
        """D(mu) of docs/mathematics.md, section 2, for multipliers in the layout of fgi_solver_messages."""
        nodes, total, at = [u.copy() for u in self.unary], self.constant, 0
        for variables, table in self.factors:
            rest = table.copy()
            for axis, i in enumerate(variables):
                m = mu[at : at + self.cards[i]]
                at += self.cards[i]
                nodes[i] += m
                rest = rest - m.reshape([-1 if k == axis else 1 for k in range(rest.ndim)])
            total += rest.max()
        assert at == len(mu)
        return total + sum(float(n.max()) for n in nodes)


class Solver:
    """A C solver on a model."""

    def __init__(self, model: Any, method: str, **settings: Any) -> None:
        s = ffi.new("fgi_settings *", lib.fgi_settings_default())
        s.method = getattr(lib, f"FGI_{method.upper()}")
        s.gap = 0
        for name, value in settings.items():
            setattr(s, name, value)
        out, error = ffi.new("fgi_solver **"), new_error()
        check(lib.fgi_solver_create(model.handle, s, out, error), error)
        self.handle = ffi.gc(out[0], lib.fgi_solver_free)
        self.info = ffi.new("fgi_info *")
        lib.fgi_solver_info(self.handle, self.info)

    def run(self, iterations: int = -1, seconds: float = -1.0) -> Solver:
        check(lib.fgi_solver_run(self.handle, seconds, iterations, self.info), new_error())
        return self

    @property
    def labels(self) -> NDArray[np.int32] | None:
        size = 1 << 16
        x = np.zeros(size, np.int32)
        return x if lib.fgi_solver_labels(self.handle, pointer(x)) else None

    def messages(self) -> Array:
        mu = np.zeros(lib.fgi_solver_message_size(self.handle))
        check(lib.fgi_solver_messages(self.handle, pointer(mu)), new_error())
        return mu

    def warm_start(self, mu: Array) -> None:
        error = new_error()
        check(lib.fgi_solver_warm_start(self.handle, pointer(np.ascontiguousarray(mu)), error), error)


class ReferenceTrws:
    """TRW-S as docs/mathematics.md, section 4, states it: one message per edge, towards the end that comes next."""

    def __init__(self, model: Dense) -> None:
        self.model = model
        self.edges = []  # (earlier, later, table with rows = earlier end)
        for (i, j), t in model.factors:
            self.edges.append((i, j, t) if i < j else (j, i, t.T))
        self.message = [np.zeros(model.cards[i]) for i, _, _ in self.edges]
        self.later = [[e for e, (i, _, _) in enumerate(self.edges) if i == n] for n in range(len(model.cards))]
        self.earlier = [[e for e, (_, j, _) in enumerate(self.edges) if j == n] for n in range(len(model.cards))]
        self.labels = [0] * len(model.cards)
        self.bound = np.inf

    def _hat(self, i: int) -> Array:
        return self.model.unary[i] + sum(self.message[e] for e in self.later[i] + self.earlier[i])

    def _send(self, i: int, hat: Array, edges: list[int], to_later: bool) -> float:
        weight = 1.0 / max(len(self.later[i]), len(self.earlier[i]), 1)
        total = 0.0
        for e in edges:
            table = self.edges[e][2] if to_later else self.edges[e][2].T
            h = np.full_like(hat, -np.inf)
            finite = hat > -np.inf
            h[finite] = weight * hat[finite] - self.message[e][finite]
            new = (table + h[:, None]).max(axis=0)
            total += new.max()
            self.message[e] = new - new.max()
        return total

    def iterate(self) -> None:
        for i in range(len(self.model.cards)):
            given = self.model.unary[i] + sum(self.message[e] for e in self.later[i])
            given = given + sum(self.edges[e][2][self.labels[self.edges[e][0]]] for e in self.earlier[i])
            self.labels[i] = int(np.argmax(given))
            hat = self._hat(i)
            self._send(i, hat - hat.max(), self.later[i], True)
        bound = self.model.constant
        for i in reversed(range(len(self.model.cards))):
            hat = self._hat(i)
            bound += hat.max() + self._send(i, hat - hat.max(), self.earlier[i], False)
        self.bound = bound

    def multipliers(self) -> Array:
        """mu as fgi_solver_messages lays it out: M at the earlier end, max_a [theta - M] at the later one."""
        out = []
        for (variables, _), (i, _, table), m in zip(self.model.factors, self.edges, self.message, strict=True):
            parts = {i: m, self.edges[len(out)][1]: (table - m[:, None]).max(axis=0)}
            out.append(np.concatenate([parts[v] for v in variables]))
        return np.concatenate(out) if out else np.zeros(0)


def random_model(
    rng: np.random.Generator,
    n: int = 7,
    labels: int = 4,
    edges: float = 0.5,
    arity: int = 2,
    forbidden: float = 0.0,
    mixed: bool = True,
) -> Dense:
    """Random label counts, unaries and factors; with arity > 2 also factors of all arities up to it."""
    cards = [int(rng.integers(1, labels + 1)) if mixed else labels for _ in range(n)]

    def table(shape: tuple[int, ...]) -> Array:
        t = rng.normal(size=shape) * 2
        t[rng.random(shape) < forbidden] = -np.inf
        return t

    model = Dense(cards, [rng.normal(size=k) for k in cards], constant=float(rng.normal()))
    for size in range(2, arity + 1):
        for chosen in itertools.combinations(range(n), size):
            if rng.random() < edges / (size - 1) ** 2:
                order = tuple(int(v) for v in rng.permutation(chosen))
                model.factors.append((order, table(tuple(cards[v] for v in order))))
    return model
