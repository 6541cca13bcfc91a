"""The models of differential.py, and the truth about them in exact arithmetic.

A score is a double, so a common power of two makes all scores of a model whole: the truth is computed in integers of
any length, labeling by labeling.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import frexp, inf, isfinite, ldexp, nextafter, ulp
from typing import Any

import numpy as np
from differential_shapes import SHAPES as SPECIAL
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph, Potts, SqDiff

MOST_LABELINGS = 1500
Scores = NDArray[np.float64]


# -- how scores are drawn ----------------------------------------------------------------------------------------


def _penalties(rng: np.random.Generator, size: Any, digits: float) -> Scores:
    v = rng.normal(size=size)
    return np.where(rng.random(size) < 0.35, -(10.0 ** rng.uniform(0, digits, size=size)), v)


def _one_penalty(rng: np.random.Generator, size: Any, digits: float) -> Scores:
    return np.where(rng.random(size) < 0.3, -(10.0 ** round(digits)), rng.normal(size=size))


# name -> draw(rng, shape, digits): `digits` is drawn once for a model, up to 39
REGIMES: dict[str, Any] = {
    "normal": lambda rng, size, digits: rng.normal(size=size),
    "ties": lambda rng, size, digits: rng.integers(-2, 3, size=size).astype(float),
    "costs": lambda rng, size, digits: -rng.integers(0, 6, size=size).astype(float),
    "zero": lambda rng, size, digits: np.zeros(size),
    "decimal": lambda rng, size, digits: rng.integers(-30, 31, size=size) / 10.0,
    "spread": lambda rng, size, digits: rng.normal(size=size) * 10.0 ** rng.uniform(0, digits, size=size),
    "offset": lambda rng, size, digits: np.round(3 * rng.normal(size=size)) * 10.0**digits + rng.normal(size=size),
    "penalties": _penalties,
    "one penalty": _one_penalty,
    "whole penalties": lambda rng, size, digits: np.round(_one_penalty(rng, size, digits)),
    "near ties": lambda rng, size, digits: 1 + rng.integers(0, 3, size=size) * 2.0**-45,
    "almost steps": lambda rng, size, digits: (
        rng.integers(-6, 7, size=size) / 10.0 + rng.choice([0.0, 1e-11, -1e-12, 1e-13, -1e-14], size=size)
    ),
    "far steps": lambda rng, size, digits: rng.integers(-3, 4, size=size) * 0.3 + np.round(10.0 ** min(digits, 15.0)),
    "subnormal": lambda rng, size, digits: rng.integers(-20, 20, size=size) * 5e-324,
    # Beyond what is promised to be solved: answers need only be true, or refused.
    "wild": lambda rng, size, digits: rng.normal(size=size) * 10.0 ** rng.uniform(-300, 300, size=size),
    "largest": lambda rng, size, digits: rng.choice([1.7e308, -1.7e308, 8e307, -8e307, 1e307, 1.0, 0.0], size=size),
}
AS_DRAWN = ("subnormal", "wild", "largest")  # not multiplied by anything
WEIGHTS = {"wild": [1e-300, 1e-10, 1e10, 2.5, -1.0], "largest": [1e-300, 1e-200, 1e-10, 0.1, -0.1, 0.25]}
TINY_WEIGHTS = [2.0**-40, -(2.0**-40), 1e-30, -1e-7]
SHAPES = ("small", "binary", "grid", "chain", "tree", "star", "dense", "wide", "labels", *SPECIAL)


@dataclass(frozen=True)
class Factor:
    """weight * table over the variables; `scores` is what that means, entry by entry."""

    variables: tuple[int, ...]
    table: Any  # an array, Potts, AbsDiff, SqDiff
    weight: float
    transposed: bool
    shared: int  # factors with the same number share a handle; -1: none
    scores: Scores


@dataclass(frozen=True)
class Case:
    """A random model, before anything of fginfer has seen it."""

    seed: int
    regime: str
    cards: tuple[int, ...]
    unaries: dict[int, Scores]
    constant: float
    factors: tuple[Factor, ...] = field(default=())
    more: tuple[tuple[tuple[int, ...], Scores], ...] = field(default=())  # further factors over one variable or none

    def graph(self) -> FactorGraph:
        g = FactorGraph(list(self.cards))
        if self.constant:
            g.add_factor([], self.constant)
        for i, scores in self.unaries.items():
            g.add_factor([i], scores)
        handles: dict[int, Any] = {}
        for f in self.factors:
            table = f.table
            if f.shared >= 0:
                table = handles[f.shared] if f.shared in handles else handles.setdefault(f.shared, g.add_table(table))
            g.add_factor(list(f.variables), table, weight=f.weight, transposed=f.transposed)
        for scope, scores in self.more:
            g.add_factor(list(scope), scores)
        _ = g.model  # built now, or refused now
        return g

    def terms(self) -> list[tuple[tuple[int, ...], Scores]]:
        """All scores with what they are about."""
        constant = [((), np.array(self.constant))] if self.constant else []
        alone = constant + [((i,), u) for i, u in self.unaries.items()] + list(self.more)
        return alone + [(f.variables, f.scores) for f in self.factors]

    def random_shift(self, rng: np.random.Generator) -> int | None:
        """A power of two that all scores may be multiplied with; None if they are too large or small for that."""
        sizes = [abs(x) for _, s in self.terms() for x in np.ravel(s) if isfinite(x) and x]
        tables = [abs(x) for f in self.factors for x in _numbers(f.table) if isfinite(x) and x]
        if not sizes or any(not 2.0**-60 <= x <= 2.0**60 for x in sizes + tables) or rng.random() < 0.4:
            return None
        return int(rng.choice([-900, 900, -500, 500, int(rng.integers(-900, 901)), int(rng.integers(-60, 61))]))


def _numbers(table: Any) -> Scores:
    if isinstance(table, Potts):
        return np.array([table.same, table.different])
    return np.array([table.weight]) if isinstance(table, AbsDiff | SqDiff) else np.ravel(table)


def scaled(case: Case, k: int) -> Case:
    """The same with all scores times 2^k."""

    def table(t: Any) -> Any:
        if isinstance(t, Potts):
            return Potts(ldexp(t.same, k), ldexp(t.different, k))
        return replace(t, weight=ldexp(t.weight, k)) if isinstance(t, AbsDiff | SqDiff) else np.ldexp(t, k)

    factors = tuple(replace(f, table=table(f.table), scores=np.ldexp(f.scores, k)) for f in case.factors)
    unaries = {i: np.ldexp(u, k) for i, u in case.unaries.items()}
    more = tuple((scope, np.ldexp(scores, k)) for scope, scores in case.more)
    return replace(case, unaries=unaries, constant=ldexp(case.constant, k), factors=factors, more=more)


# -- random models -----------------------------------------------------------------------------------------------


class _Maker:
    def __init__(self, seed: int, regime: str | None) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.seed = seed
        self.regime = str(rng.choice(list(REGIMES))) if regime is None else regime
        self.digits = float(rng.choice([rng.uniform(0, 39), 9.0, 20.0, 3.0]))
        # All scores are times this: 1e-300 to 1e300, with room for the digits.
        self.size = 1.0
        if self.regime not in AS_DRAWN and rng.random() < 0.5:
            self.size = float(10.0 ** rng.uniform(-300, 300 - self.digits - 3))
        self.hard = float(rng.choice([0, 0, 0, 0.1, 0.3, 0.6]))
        self.shape = str(rng.choice(SHAPES))
        self.signed_zeros = bool(rng.random() < 0.2)
        self.weights = WEIGHTS.get(self.regime, [2.5, -1.0, 0.1, 0.0, -0.3, 0.5])
        if self.regime not in WEIGHTS and rng.random() < 0.1:
            self.weights = TINY_WEIGHTS
        self.cards = self._cards()

    def _cards(self) -> list[int]:
        rng = self.rng
        if self.shape in SPECIAL:
            cards = SPECIAL[self.shape].cards(rng)
        elif self.shape == "binary":
            cards = [2] * int(rng.integers(1, 11))
        elif self.shape == "grid":
            cards = [2] * 9
        elif self.shape == "wide":
            cards = rng.integers(1, 17, int(rng.integers(1, 4))).tolist()
        elif self.shape == "labels":
            most = int(rng.integers(9, 27))
            cards = rng.permutation([most, most if rng.random() < 0.4 else int(rng.integers(5, 31)), 2, 1]).tolist()
        else:
            cards = rng.integers(1, 5, int(rng.integers(0, 7))).tolist()
        while np.prod(np.array(cards, float)) > MOST_LABELINGS:
            cards[int(np.argmax(cards))] -= 1
        return [int(c) for c in cards]

    def draw(self, shape: tuple[int, ...], hard: bool = True) -> Scores:
        v = np.asarray(REGIMES[self.regime](self.rng, shape, self.digits), float) * self.size
        if self.signed_zeros:
            v = np.where((v == 0) & (self.rng.random(shape) < 0.5), -0.0, v)
        else:
            v += 0.0
        if hard and self.hard:
            v = np.where(self.rng.random(shape) < self.hard, -inf, v)
        return v

    def scopes(self) -> list[tuple[int, ...]]:
        rng, n = self.rng, len(self.cards)
        if self.shape in SPECIAL:
            return SPECIAL[self.shape].scopes(rng, self.cards)
        if self.shape == "grid":
            rows = [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)]
            return rows + [(3 * i + j, 3 * i + j + 3) for i in range(2) for j in range(3)]
        if self.shape == "chain":
            return [(i, i + 1) for i in range(n - 1)]
        if self.shape == "star":
            return [(0, i) for i in range(1, n)]
        if self.shape == "tree":
            return [(int(rng.integers(0, i)), i) for i in range(1, n) if rng.random() < 0.8]
        arities = [2, 2, 2, 3] if self.shape == "binary" else [1, 2, 2, 2, 3, 4, 5, 6]
        count = int(rng.integers(0, 2 * n + 2)) if n else 0
        drawn = [tuple(rng.permutation(n)[: min(n, int(rng.choice(arities)))].tolist()) for _ in range(count)]
        if drawn and rng.random() < 0.25:  # several factors over the same variables, in any order
            drawn += [tuple(rng.permutation(s).tolist()) for s in drawn[: int(rng.integers(1, 4))]]
        return drawn

    def factor(self, scope: tuple[int, ...], shared: dict[Any, Scores]) -> Factor | None:
        rng = self.rng
        if len(scope) == 2 and rng.random() < 0.5:
            scope = scope[::-1]
        weight = float(rng.choice(self.weights)) if rng.random() < (0.8 if self.regime == "largest" else 0.3) else 1.0
        transposed = len(scope) == 2 and bool(rng.random() < 0.3)
        shape = tuple(self.cards[v] for v in scope)
        kind, number = str(rng.choice(["dense", "shared", "implicit"])), -1
        table: Any
        if kind == "implicit" and len(scope) == 2:
            table, full = self.implicit(shape)
        else:
            stored = shape[::-1] if transposed else shape
            table = self.table(stored)
            if kind == "shared" and len(scope) > 1:
                table = shared.setdefault(stored, table)
                number = list(shared).index(stored)
            full = table.T if transposed else table
        if weight < 0 and (full == -inf).any():
            weight = -weight
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            scores = np.zeros(shape) if weight == 0 else abs(weight) * (full if weight > 0 else 0.0 - full)
        if np.isinf(scores[np.isfinite(full)]).any():
            return None
        return Factor(scope, table, weight, transposed, number, scores)

    def table(self, shape: tuple[int, ...]) -> Scores:
        """Now and then one that says nothing, forbids everything, or has a short form."""
        odd = self.rng.random()
        if odd < 0.05:
            return np.full(shape, self.draw((1,), hard=False)[0])
        if odd < 0.055:
            return np.full(shape, -inf)
        by_distance = odd < 0.2 and len(shape) == 2 and shape[0] == shape[1] > 8
        if by_distance:
            return self.implicit(shape)[1]
        return SPECIAL[self.shape].form(self.rng, self.draw(shape)) if self.shape in SPECIAL else self.draw(shape)

    def implicit(self, shape: tuple[int, ...]) -> tuple[Any, Scores]:
        rng = self.rng
        d = np.abs(np.subtract.outer(np.arange(shape[0]), np.arange(shape[1]))).astype(float)
        kind = int(rng.integers(3))
        if kind == 0:
            a, b = self.draw((2,), hard=False).tolist()
            if rng.random() < 0.15:
                b = -inf
            return Potts(a, b), np.where(d == 0, a, b)
        weight = float(abs(self.draw((1,), hard=False)[0]))
        most = float(rng.choice([inf, 0.5, 1.0, 2.0, 3.5]))
        with np.errstate(over="ignore"):
            if kind == 1:
                return AbsDiff(weight, most), -weight * np.minimum(d, most) + 0.0
            return SqDiff(weight, most), -weight * np.minimum(d * d, most) + 0.0

    def case(self) -> Case:
        rng = self.rng
        unaries = {i: self.draw((c,)) for i, c in enumerate(self.cards) if rng.random() < 0.7}
        constant = float(self.draw((1,), hard=False)[0]) if rng.random() < 0.2 else 0.0
        shared: dict[Any, Scores] = {}
        factors = []
        for scope in self.scopes():
            if len(scope) == 1:
                continue  # see more()
            made = self.factor(scope, shared)
            if made is not None:
                factors.append(made)
        return Case(self.seed, self.regime, tuple(self.cards), unaries, constant, tuple(factors), tuple(self.more()))

    def more(self) -> list[tuple[tuple[int, ...], Scores]]:
        """In two of five models: more scores of variables and of the constant, among them large ones that cancel."""
        rng, out = self.rng, list[tuple[tuple[int, ...], Scores]]()
        if rng.random() >= 0.4:
            return out
        for scope in [(v,) for v in range(len(self.cards)) if rng.random() < 0.6] + [()] * (rng.random() < 0.3):
            shape = tuple(self.cards[v] for v in scope)
            rows = [self.draw(shape, hard=False) for _ in range(int(rng.integers(0, 4)))]
            if rng.random() < 0.6 and self.regime not in AS_DRAWN and self.size < 1e280:
                large = rng.choice([0.0, 1.0, -3.0], shape) * self.size * 10.0 ** float(rng.choice([3, 9, 16, 17, 25]))
                rows += [np.asarray(large), np.asarray(0.0 - large)]
            out += [(scope, rows[k]) for k in rng.permutation(len(rows))]
        return out


def random_case(seed: int, regime: str | None = None) -> Case:
    return _Maker(seed, regime).case()


# -- the truth ---------------------------------------------------------------------------------------------------


class Truth:
    """All labelings of a case, scored in integers: a score is an integer times 2^exponent, None if it is forbidden."""

    def __init__(self, case: Case) -> None:
        finite = [x for _, s in case.terms() for x in np.ravel(s) if isfinite(x) and x]
        self.exponent = min((frexp(x)[1] - 53 for x in finite), default=0)
        n = len(case.cards)
        self.total = np.zeros(case.cards, dtype=object)
        self.allowed = np.ones(case.cards, bool)
        for scope, scores in case.terms():
            order = np.argsort(scope) if scope else []
            ordered = np.transpose(scores, order) if len(scope) else scores
            shape = [1] * n
            for v in scope:
                shape[v] = case.cards[v]
            spread = np.asarray(ordered, float).reshape(shape)
            self.allowed &= np.isfinite(spread)
            whole = np.array([self.whole(x) if isfinite(x) else 0 for x in spread.ravel()], dtype=object)
            self.total = np.asarray(self.total + whole.reshape(shape), dtype=object)
        scores = self.total[self.allowed]
        self.optimum: int | None = max(scores.tolist()) if scores.size else None
        self.unit = _unit(case)

    def whole(self, x: float) -> int:
        """A score of the model as an integer."""
        return int(Fraction(x) / Fraction(2) ** self.exponent)

    def value(self, score: int) -> Fraction:
        return score * Fraction(2) ** self.exponent

    def score(self, labels: NDArray[np.int32]) -> int | None:
        at = tuple(labels.tolist())
        return self.total[at] if self.allowed[at] else None

    def is_score(self, said: float, exact: int) -> bool:
        """Right but for the last digit."""
        return abs(Fraction(said) - self.value(exact)) <= Fraction(ulp(said))

    def is_below(self, bound: float, score: int) -> bool:
        return bound == -inf or (bound < inf and Fraction(bound) < self.value(score))

    def beats(self, score: int, said: float) -> bool:
        """Is the score better by more than what "optimal" allows for?"""
        if said == -inf:
            return True
        allowed = Fraction(1e-12) * max(abs(Fraction(said)), Fraction(self.unit))
        return self.value(score) - Fraction(said) > allowed

    def is_above(self, graph: FactorGraph, cutoff: float) -> bool:
        """Is a best labeling above the cutoff? By what it is said to score, which may be off in the last digit."""
        best = np.argwhere(self.allowed & (self.total == self.optimum)).astype(np.int32)
        return any(graph.score(labels) > cutoff for labels in best)

    def gap(self, score: float, bound: float) -> Fraction | None:
        if not isfinite(bound):
            return None
        scale = max(abs(Fraction(score)), Fraction(self.unit))
        difference = max(Fraction(0), Fraction(bound) - Fraction(score))
        return difference / scale if scale else (Fraction(0) if difference == 0 else None)

    def near_optimum(self, rng: np.random.Generator) -> float:
        """A cutoff: the optimum itself, the score of some labeling, or a little off one."""
        scores = sorted(set(self.total[self.allowed]))
        chosen = scores[-1] if rng.random() < 0.5 else scores[int(rng.integers(len(scores)))]
        x = float(self.value(chosen))
        near = [x, nextafter(x, -inf), x - abs(x) * 2.0**-50, x - abs(x) / 8, x + abs(x) / 8]
        if rng.random() < 0.3:  # anywhere: penalties may be far below it
            near = [0.0, self.unit, -self.unit, -3 * self.unit, float(self.value(scores[0]))]
        return float(rng.choice([c for c in near if isfinite(c)]))

    def random_labels(self, rng: np.random.Generator) -> list[int]:
        """A start: the best labeling, or any."""
        best = np.argwhere(self.allowed & (self.total == self.optimum)) if rng.random() < 0.3 else np.empty((0, 0))
        chosen = best[0] if len(best) else [int(rng.integers(k)) for k in self.total.shape]
        return [int(a) for a in chosen]

    def text(self, score: int | None) -> str | None:
        return None if score is None else repr(float(self.value(score)))


def _unit(case: Case) -> float:
    """Smallest, over factors with two distinct finite scores, of best minus next; the definition, once more."""
    steps = []
    for scope, scores in _folded(case):
        distinct = sorted({x for x in np.ravel(scores).tolist() if isfinite(x)}) if scope else []
        if len(distinct) > 1:
            steps.append(distinct[-1] - distinct[-2])
    return min(steps, default=0.0)


def _folded(case: Case) -> list[tuple[tuple[int, ...], Scores]]:
    """The terms, but those of one variable added up exactly and rounded once."""
    out = [(f.variables, f.scores) for f in case.factors]
    for v, card in enumerate(case.cards):
        mine = [scores for scope, scores in case.terms() if scope == (v,)]
        sums = [[float(scores[a]) for scores in mine] for a in range(card)]
        out.append(((v,), np.array([-inf if -inf in x else float(sum(map(Fraction, x))) for x in sums])))
    return out
