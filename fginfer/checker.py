"""A checker of proofs that trusts nobody: Python and numpy, its own readers, no import of fginfer, no rounding.

    python checker.py MODEL PROOF        MODEL: .uai, .LG or .npz as fginfer writes it

docs/proofs.md describes the format, the rules and the arithmetic. In short: every score is rounded up to a whole
number of `unit`s, a power of two, and from then on all arithmetic is on whole numbers below 2^53, which doubles hold
exactly. The state is a model whose best score is no less than that of the file (or than `floor`). Every step replaces
it by another such model; at the end nothing is left of it but a constant, and that is the bound.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import zipfile
import zlib
from fractions import Fraction
from typing import Any, BinaryIO

import numpy

np: Any = numpy
MAGIC = b"FGPROOF1\n"
BITS = 44  # bits of the largest difference of scores in a table
LARGEST = 2.0**50  # the largest entry in units: sums of a few stay below 2^53
MOST_ENTRIES = 1 << 24  # entries of one table that a step makes
MOST_MEMORY = 1 << 30  # bytes that the nodes of a tree on the way to the present one may hold
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # label counts that tables are padded to
Array = Any


class NotVerified(Exception):
    """Why a proof, or a model, is not accepted."""


# -- the model as it is in its file --------------------------------------------------------------------------------


class File:
    """Label counts, and terms: a tuple of variables and the scores of their states, last variable fastest."""

    def __init__(self, path: str) -> None:
        self.cards: list[int] = []
        self.terms: list[tuple[tuple[int, ...], Array]] = []
        self.cutoff, self.factors = -math.inf, 0
        self.read_npz(path) if path.endswith(".npz") else self.read_uai(path)

    def add(self, scope: tuple[int, ...], scores: Array) -> None:
        if np.isnan(scores).any() or (scores == np.inf).any():
            raise NotVerified("the model has a score that is neither finite nor -inf")
        if len(set(scope)) < len(scope) or any(not 0 <= v < len(self.cards) for v in scope):
            raise NotVerified("the model has a factor with a variable that is repeated or not there")
        self.terms.append((scope, scores))

    def read_uai(self, path: str) -> None:
        with open(path, encoding="utf-8") as stream:
            words = stream.read().split()
        logarithms, at = path.endswith(".LG"), 0

        def whole(most: int) -> int:
            nonlocal at
            word = words[at] if at < len(words) else "the end"
            if not (word.isdecimal() and len(word) <= 10 and int(word) <= most):
                raise NotVerified(f"the model is no UAI file: {word[:40]!r} where a whole number was expected")
            at += 1
            return int(word)

        if not words or words[0].upper() not in ("MARKOV", "BAYES"):
            raise NotVerified("the model is no UAI file: it does not begin with MARKOV or BAYES")
        at = 1
        self.cards = [whole(1 << 31) for _ in range(whole(len(words)))]
        scopes = [tuple(whole(1 << 31) for _ in range(whole(64))) for _ in range(whole(len(words)))]
        self.factors = sum(len(scope) > 1 for scope in scopes)
        for scope in scopes:
            if any(v >= len(self.cards) for v in scope):
                raise NotVerified("the model has a factor with a variable that is not there")
            shape = [self.cards[v] for v in scope]
            n = whole(len(words))
            if n != math.prod(shape) or at + n > len(words):
                raise NotVerified("the model has a table whose size does not fit its variables")
            try:
                values = np.array(words[at : at + n], np.float64)
            except ValueError:
                raise NotVerified("the model has an entry that is no number") from None
            if not logarithms:
                if (values < 0).any() or any(set(words[at + k].lower().split("e")[0]) - set("0.+-")
                                             for k in np.flatnonzero(values == 0)):  # fmt: skip
                    raise NotVerified("the model has a potential below 0, or one too small for a double")
                with np.errstate(divide="ignore"):
                    values = np.log(values)
            at += n
            self.add(scope, values.reshape(shape))
        if at != len(words):
            raise NotVerified("the model has text after its last table")

    def read_npz(self, path: str) -> None:
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type for member in archive.infolist()):
                raise NotVerified("the model's archive is compressed; fginfer writes it stored")
        with np.load(path, allow_pickle=False) as members:
            at = {name: members[name] for name in members.files}
        if "fginfer" not in at:
            raise NotVerified("the archive is no model of fginfer")
        if "rules" in at:
            raise NotVerified("the model has constraints; lower them to tables first (fginfer.read(f).lowered().graph)")
        self.cards = at["cards"].tolist()
        self.factors = len(at["factor_table"])
        self.cutoff = float(at.get("cutoff", -math.inf))
        arity, dims, values = at["table_arity"].tolist(), at["dims"].tolist(), at["values"]
        kinds = at["table_kind"].tolist() if "table_kind" in at else [0] * len(arity)
        parameters = at.get("params", np.zeros(2 * len(arity))).reshape(-1, 2)
        begin = np.concatenate(([0], np.cumsum(self.cards, dtype=np.int64)))
        for v in range(len(self.cards)):
            self.add((v,), np.asarray(at["unary"][begin[v] : begin[v + 1]], np.float64))
        self.add((), np.array(float(at["constant"])))
        tables, d, e = [], 0, 0
        for kind, k, p in zip(kinds, arity, parameters, strict=True):
            if kind:
                tables.append((kind, p, ()))
                continue
            shape = tuple(dims[d : d + k])
            tables.append((0, values[e : e + math.prod(shape)].reshape(shape), shape))
            d, e = d + k, e + math.prod(shape)
        weights = at.get("factor_weight", np.ones(len(at["factor_table"])))
        turned = at.get("factor_transposed", np.zeros(len(at["factor_table"]), bool))
        place, ends, variables = 0, at.get("var_begin"), at["vars"].tolist()
        for f, t in enumerate(at["factor_table"].tolist()):
            k = (2 if kinds[t] else arity[t]) if ends is None else int(ends[f + 1] - ends[f])
            scope = tuple(variables[place : place + k])
            place += k
            kind, table, shape = tables[t]
            if kind:
                table = implicit(kind, table, [self.cards[v] for v in scope])
            elif turned[f]:
                table = table.T
            if table.shape != tuple(self.cards[v] for v in scope):
                raise NotVerified("the model has a table whose size does not fit its variables")
            with np.errstate(invalid="ignore"):
                self.add(scope, weights[f] * table if weights[f] != 1 else table)
        k = 0
        for v in at.get("leftover_var", np.zeros(0, int)).tolist():
            size = 1 if v < 0 else self.cards[v]
            self.add((v,) if v >= 0 else (), at["leftover"][k : k + size].reshape((size,) if v >= 0 else ()))
            k += size

    def score(self, labels: Array) -> Fraction | None:
        """Exact; None: forbidden."""
        picked = [float(scores[tuple(labels[v] for v in scope)]) for scope, scores in self.terms]
        if -math.inf in picked:
            return None
        least = min((math.frexp(x)[1] for x in picked if x), default=0) - 53
        return sum(int(math.ldexp(m, 53)) << (e - 53 - least) for m, e in map(math.frexp, picked) if m) * power(least)


def implicit(kind: int, p: Array, shape: list[int]) -> Array:
    a, b = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    if kind == 1:
        return np.where(a == b, p[0], p[1])
    d = np.abs(a - b).astype(float)
    return -p[0] * np.minimum(d if kind == 2 else d * d, p[1]) + 0.0


def power(e: int) -> Fraction:
    return Fraction(2) ** e


def floored(x: float, e: int) -> int:
    """x in units of 2^e, rounded down."""
    return math.floor(Fraction(x) / power(e))


# -- the model in whole numbers --------------------------------------------------------------------------------------


def normal(table: Array) -> tuple[Array, int]:
    """The table with its maximum, if it has one, taken out."""
    top = float(table.max(initial=-np.inf))
    return (table - top, int(top)) if top > -np.inf else (table, 0)


class State:
    """The model under way. `unary[v]` and `tables[scope]` (scopes ascend) hold whole numbers and -inf; each pair is an
    array with maximum 0 and the constant that was taken out of it."""

    def __init__(self, file: File, floor: float) -> None:
        self.cards = file.cards
        self.unit = e = self.choose_unit(file, floor)
        self.exact, self.step, rounded, parts = True, 0, False, []
        for scope, scores in file.terms:
            with np.errstate(over="ignore", under="ignore"):
                s = np.ldexp(scores, -e)
            up = np.where(s == -np.inf, s, np.maximum(np.ceil(s), -(2.0**60)))
            up[(scores > 0) & (up <= 0)] = 1  # what was too small for a double
            up[(scores > -np.inf) & (s == -np.inf)] = -(2.0**60)
            with np.errstate(invalid="ignore"):
                off = np.where(np.isfinite(s), up - s, 0.0)  # what every score was raised by
            rounded |= bool(off.any() or ((s == 0) & (scores != 0)).any())
            top = float(up.max(initial=-np.inf))
            if top > -np.inf:  # differences of doubles beyond 2^53 may be rounded, those of integers are not
                finite = up > -np.inf
                less = np.where(finite, up, top).astype(np.int64) - int(top)
                up = np.where(finite, np.maximum(less, -(1 << 61)).astype(np.float64), -np.inf)
            parts.append((scope, up, int(top) if top > -np.inf else 0, off))
        all_maxima = sum(top for _, _, top, _ in parts)
        self.floor: int | None = None if floor == -math.inf else floored(floor, e)
        worst = -math.inf if self.floor is None else float(self.floor - all_maxima)
        worst = math.nextafter(worst, -math.inf) if abs(worst) > 2.0**53 else worst
        self.constant, self.dead, self.gone = 0, False, [False] * len(self.cards)
        self.unary = [(np.zeros(k), 0) for k in self.cards]
        self.tables: dict[tuple[int, ...], tuple[Array, int]] = {}
        self.of: list[set[tuple[int, ...]]] = [set() for _ in self.cards]
        for scope, table, top, off in parts:
            table = np.where(table <= worst, -np.inf, table)  # whoever uses it is not above the floor
            off = off[table > -np.inf]
            self.exact &= not off.size or float(off.min()) == float(off.max())  # then all differences are as they were
            if self.exact and self.step != 1:
                numbers = table[table > -np.inf]
                self.step = int(np.gcd.reduce(numbers.astype(np.int64).ravel(), initial=self.step))
            self.put(scope, table, top)
        self.origin, self.exact = all_maxima, self.exact and self.step > 64 * len(parts)
        self.step = self.step if self.exact else 0  # scores of labelings differ by whole multiples; 0: of nothing
        # We take one unit for each term, the rest is for whoever wrote the proof.
        self.budget = 64 * len(parts) if rounded or not self.exact else 0
        self.first_step = self.step

    @staticmethod
    def choose_unit(file: File, floor: float) -> int:
        """So that differences that count have some BITS bits, and every score less than 62."""
        tops = [float(s.max(initial=-np.inf)) for _, s in file.terms]
        room = math.fsum(t for t in tops if t > -np.inf) - floor
        widest = largest = 0.0
        for (_, scores), top in zip(file.terms, tops, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                below = top - scores
                used = below[(scores > -np.inf) & (below <= room * (1 + 1e-9))]
            widest = max(widest, float(used.max(initial=0)))
            largest = max(largest, abs(top) if top > -np.inf else 0)
        if widest == np.inf:
            raise NotVerified("the model's scores are too large")
        wide, large = (math.frexp(x)[1] if x else -1000 for x in (widest, largest))
        return max(-1000, wide - BITS, large - 60 if widest else large - BITS)

    def put(self, scope: tuple[int, ...], table: Array, constant: int) -> None:
        """Adds a table. Entries that are too small are raised: a bound stays one."""
        order = sorted(range(len(scope)), key=lambda k: scope[k])
        scope, table = tuple(scope[k] for k in order), table.transpose(order)
        if not scope:
            self.constant += constant
            self.dead |= bool(table == -np.inf)
            self.constant += 0 if table == -np.inf else int(table)
            return
        there = self.unary[scope[0]] if len(scope) == 1 else self.tables.get(scope)
        if there is not None:
            table, constant = there[0] + table, there[1] + constant
        table, top = normal(table)
        table = self.raised(table)
        if len(scope) == 1:
            self.unary[scope[0]] = table, constant + top
            return
        self.tables[scope] = table, constant + top
        for v in scope:
            self.of[v].add(scope)

    def raised(self, table: Array) -> Array:
        """Entries below what fits are raised to it: bounds stay bounds, differences do not stay what they were."""
        low = (table < -LARGEST) & (table > -np.inf)
        self.exact &= not low.any()
        return np.where(low, -LARGEST, table)

    def take(self, scope: tuple[int, ...]) -> tuple[Array, int]:
        for v in scope:
            self.of[v].discard(scope)
        return self.tables.pop(scope)

    def live(self, v: int) -> Array:
        return np.flatnonzero(self.unary[v][0] > -np.inf)

    def eliminate(self, v: int) -> None:
        """The variable goes; a table over its neighbours says what it does at best."""
        live, scopes = self.live(v), sorted(self.of[v])
        if len(live) == 1:  # known: every table is looked up on its own
            for s in scopes:
                table, constant = self.take(s)
                self.put(tuple(w for w in s if w != v), table.take(int(live[0]), s.index(v)), constant)
            self.constant += self.unary[v][1]  # the only label has the maximum, 0
            return self.remove(v)
        others = tuple(sorted({w for s in scopes for w in s} - {v}))
        shape = [self.cards[w] for w in others]
        if math.prod(shape) * max(1, len(live)) > MOST_ENTRIES:
            raise NotVerified(f"to eliminate variable {v} takes a table of more than {MOST_ENTRIES} entries")
        own, constant = self.unary[v]
        total = own[live].reshape([-1] + [1] * len(others)) + np.zeros([1, *shape])
        for s in scopes:
            table, more = self.take(s)
            table = np.moveaxis(table, s.index(v), 0)[live]
            rest = [w for w in s if w != v]
            total = self.raised(total) + table.reshape(
                [len(live)] + [self.cards[w] if w in rest else 1 for w in others]
            )
            constant += more
        self.remove(v)
        self.put(others, total.max(axis=0, initial=-np.inf), constant)

    def remove(self, v: int) -> None:
        self.gone[v], self.unary[v] = True, (np.zeros(self.cards[v]), 0)

    def bound(self) -> int | None:
        """The sum of all maxima; None: nothing is left."""
        left = [self.unary[v] for v in range(len(self.cards)) if not self.gone[v]] + list(self.tables.values())
        if self.dead or any(table.max(initial=-np.inf) == -np.inf for table, _ in left):
            return None
        return self.constant + sum(constant for _, constant in left)

    def whole_steps(self, x: int) -> int:
        """The largest difference of scores that is at most x."""
        return x // self.step * self.step if self.step and self.exact else x


# -- trees -----------------------------------------------------------------------------------------------------------


class Node:
    """What is left of a model in a branch: the scores of labels, what messages have taken out of tables."""

    def __init__(self, unary: Array, message: Array, active: list[Array], entries: Array) -> None:
        self.unary, self.message, self.active, self.entries = unary, message, active, entries
        self.maximum: int | None = None
        self.known = False
        self.over = False  # found to be closed: steps in it say nothing new

    def copy(self) -> Node:
        made = Node(self.unary.copy(), self.message.copy(), self.active, self.entries)
        made.over = self.over
        return made


class Tree:
    """A search over some variables, no table of which has others. Labels are numbered through, as they are listed."""

    def __init__(self, state: State, variables: list[int], labels: list[list[int]], factors: list[list[int]]) -> None:
        self.state, self.variables = state, variables
        number = {v: k for k, v in enumerate(variables)}
        if len(number) < len(variables) or any(not 0 <= v < len(state.cards) or state.gone[v] for v in variables):
            raise NotVerified("the tree lists a variable twice, or one that is not there")
        for v, listed in zip(variables, labels, strict=True):
            if sorted(set(listed)) != listed or not set(state.live(v).tolist()) <= set(listed):
                raise NotVerified(f"the tree must list the labels of variable {v} that are left, in order")
            if listed and not 0 <= listed[0] <= listed[-1] < state.cards[v]:
                raise NotVerified(f"the tree lists a label that variable {v} does not have")
        self.begin = np.concatenate(([0], np.cumsum([len(x) for x in labels]))).astype(np.int64)
        self.n_labels = n = int(self.begin[-1])
        self.owner = np.repeat(np.arange(len(variables)), np.diff(self.begin))
        scopes = [tuple(variables[k] for k in f) for f in factors]
        self.scopes = sorted({s for v in variables for s in state.of[v]} | {tuple(sorted(s)) for s in scopes})
        if any(len(set(s)) < max(2, len(s)) or not set(s) <= set(number) for s in self.scopes):
            raise NotVerified("the tree leaves out a variable that shares a table with one it lists")
        self.offset = sum(state.unary[v][1] for v in variables)
        unary = np.concatenate([state.unary[v][0][x] for v, x in zip(variables, labels, strict=True)] + [[-np.inf]])
        self.label_of, place, at = [], {}, 0
        grouped: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for s in self.scopes:
            for k in [number[v] for v in s]:
                size = int(self.begin[k + 1] - self.begin[k])
                place[s, k] = at
                self.label_of.append(np.arange(self.begin[k], self.begin[k + 1]))
                at += size
            sizes = [len(labels[number[v]]) for v in s]
            shape = tuple(next((z for z in SIZES if z >= x), x) for x in sizes)
            grouped.setdefault(shape, []).append(s)
        self.label_of = np.concatenate([*self.label_of, [n]]).astype(np.int64)
        if sum(math.prod(shape) * len(x) for shape, x in grouped.items()) > 16 * MOST_ENTRIES:
            raise NotVerified("the tables of the tree are too large")
        self.most = (
            7 * LARGEST / max([2, *map(len, self.scopes)])
        )  # the most of a message: a table less all of them is < 2^53
        self.groups = [self.group(shape, x, labels, number, place, at) for shape, x in grouped.items()]
        entries = []
        self.entry_owner, self.entry_factor = [], []
        for f, (listed, s) in enumerate(zip(factors, scopes, strict=True)):
            for k in listed:
                first, size = place[tuple(sorted(s)), k], int(self.begin[k + 1] - self.begin[k])
                entries.append(np.arange(first, first + size))
                self.entry_owner.append(np.full(size, k))
                self.entry_factor.append(np.full(size, f))
        none = np.zeros(0, np.int64)
        self.entry_place = np.concatenate([none, *entries])
        self.entry_owner = np.concatenate([none, *self.entry_owner])
        self.entry_factor = np.concatenate([none, *self.entry_factor])
        self.slot_owner = np.array([k for f in factors for k in f], np.int64)
        self.slot_factor = np.repeat(np.arange(len(factors)), [len(f) for f in factors]).astype(np.int64)
        self.node = Node(unary, np.zeros(at + 1), [np.arange(len(g[0])) for g in self.groups],
                         np.arange(len(self.entry_place)))  # fmt: skip
        self.start = unary.copy()  # before all messages
        self.stack: list[Node] = []
        self.threshold: int | None = None
        self.reference = 0  # the score of some labeling: others differ from it by whole steps
        self.size = 16 * (n + at)

    def group(self, shape: Any, scopes: Any, labels: Any, number: Any, place: Any, n_places: int) -> Any:
        """Tables of one shape, the labels of their axes and the places of their messages."""
        tables = np.full((len(scopes), *shape), -np.inf)
        own = [np.full((len(scopes), size), self.n_labels) for size in shape]
        places = [np.full((len(scopes), size), n_places) for size in shape]
        for t, s in enumerate(scopes):
            kept = [labels[number[v]] for v in s]
            table, constant = self.state.tables.get(s, (np.zeros([self.state.cards[v] for v in s]), 0))
            tables[(t, *(slice(len(x)) for x in kept))] = table[np.ix_(*kept)]
            self.offset += constant
            for axis, v in enumerate(s):
                k, size = number[v], len(kept[axis])
                own[axis][t, :size] = np.arange(self.begin[k], self.begin[k + 1])
                places[axis][t, :size] = np.arange(place[s, k], place[s, k] + size)
        owners = np.array([[number[v] for v in s] for s in scopes])
        return tables, own, places, owners

    def blocks(self, node: Node, g: int, rows: Array, minus: Array) -> Array:
        """Tables of a group less their messages; -inf where a label is gone."""
        tables, _, places, _ = self.groups[g]
        block = tables[rows]
        for axis, at in enumerate(places):
            block = block - minus[at[rows]].reshape([len(rows)] + [-1 if k == axis else 1 for k in range(len(places))])
        return block

    def minus(self, node: Node) -> Array:
        return np.where(node.unary[self.label_of] == -np.inf, np.inf, node.message)

    def tops(self, node: Node) -> Array:
        return np.maximum.reduceat(node.unary, self.begin[:-1])

    def bound(self, node: Node) -> int | None:
        """The sum of all maxima; None: no labeling is left."""
        if not node.known:
            minus = self.minus(node)
            maxima = [self.tops(node)]
            for g, rows in enumerate(node.active):
                if len(rows):
                    maxima.append(self.blocks(node, g, rows, minus).reshape(len(rows), -1).max(axis=1))
            node.maximum, node.known = exact_sum(np.concatenate(maxima)), True
        return node.maximum

    def label_bounds(self, node: Node) -> tuple[int | None, Array]:
        """The bound, and what it falls by when a variable has a certain label."""
        minus, tops = self.minus(node), self.tops(node)
        maxima, falls = [tops], node.unary.copy()
        with np.errstate(invalid="ignore"):
            falls[:-1] -= tops[self.owner]
            for g, rows in enumerate(node.active):
                if not len(rows):
                    continue
                block, own = self.blocks(node, g, rows, minus), self.groups[g][1]
                best = block.reshape(len(rows), -1).max(axis=1)
                maxima.append(best)
                for axis, at in enumerate(own):
                    row = block.max(axis=tuple(k + 1 for k in range(len(own)) if k != axis)) - best[:, None]
                    falls += np.bincount(at[rows].ravel(), row.ravel(), self.n_labels + 1)
        node.maximum, node.known = exact_sum(np.concatenate(maxima)), True
        return node.maximum, falls

    # the steps

    def send(self, numbers: Array, exponent: int) -> None:
        node = self.node
        if node.over:
            return
        if len(numbers) != len(node.entries):
            raise NotVerified(f"{len(numbers)} messages where there are {len(node.entries)}")
        change = np.rint(np.ldexp(numbers.astype(np.float64), max(-2000, min(2000, exponent - self.state.unit))))
        at = self.entry_place[node.entries]
        np.add.at(node.message, at, change)
        self.add(node, self.label_of[at], change)
        if not max(np.abs(change).max(initial=0), np.abs(node.message).max()) < self.most:
            raise NotVerified("the messages are too large")
        node.known = False

    def add(self, node: Node, labels: Array, change: Array) -> None:
        """Adds to scores of labels, several times to one perhaps; all sums on the way stay below 2^53."""
        sizes = np.bincount(labels, np.where(change > -np.inf, np.abs(change), 0.0), self.n_labels + 1)
        np.add.at(node.unary, labels, change)
        if sizes.max() > 4 * LARGEST or node.unary.max() > 4 * LARGEST:
            raise NotVerified("the messages of a variable are too large")
        node.unary[(node.unary < -4 * LARGEST) & (node.unary > -np.inf)] = -4 * LARGEST  # raised: a bound stays one

    def raise_threshold(self, labels: Array, lead: float) -> None:
        """A labeling of what the tree is about, and how far above it the threshold is."""
        if (labels < self.begin[:-1]).any() or (labels >= self.begin[1:]).any() or not 0 <= lead < np.inf:
            raise NotVerified("the threshold has a label that is not listed, or an infinite lead")
        value = exact_sum(self.start[labels])
        for tables, _, _, owners in self.groups:
            index = tuple(labels[owners[:, k]] - self.begin[owners[:, k]] for k in range(owners.shape[1]))
            more = exact_sum(tables[(np.arange(len(tables)), *index)])
            value = None if value is None or more is None else value + more
        if value is None:
            raise NotVerified("the threshold's labeling is forbidden")
        self.reference = value
        value += floored(lead, self.state.unit)
        self.threshold = value if self.threshold is None else max(value, self.threshold)

    def closed(self, bound: int | None) -> bool:
        return bound is None or (self.threshold is not None and bound <= self.threshold)

    def remove(self, labels: Array) -> None:
        """Labels with which nothing above the threshold is left."""
        if ((labels < 0) | (labels >= self.n_labels)).any():
            raise NotVerified("a label that is not listed is removed")
        node = self.node
        while not node.over and len(labels := labels[node.unary[labels] > -np.inf]):
            bound, falls = self.label_bounds(node)
            if self.closed(bound):
                node.over = True  # nothing above the threshold is left at all
                return
            room = -np.inf if self.threshold is None else float(self.threshold - int(bound or 0))
            room = room if room > -(2.0**53) else -np.inf  # sums below that are not exact
            gone = falls[labels] <= room
            if not gone.any():
                k = int(labels[0])
                v, a = self.variables[self.owner[k]], k - int(self.begin[self.owner[k]])
                raise NotVerified(f"label number {a} of variable {v} may be in a labeling above the threshold")
            node.unary[labels[gone]] = -np.inf
            node.known = False

    def branch(self, label: int) -> None:
        """The child in which a variable has the label; the node goes on without it."""
        node = self.node
        if not 0 <= label < self.n_labels or (node.unary[label] == -np.inf and not node.over):
            raise NotVerified("a branch on a label that is gone")
        if (len(self.stack) + 1) * self.size > MOST_MEMORY:
            raise NotVerified("the tree is too deep")
        child = node.copy()
        if node.over:
            self.stack.append(node)
            self.node = child
            return
        k = int(self.owner[label])
        child.unary[self.begin[k] : self.begin[k + 1]] = -np.inf
        child.unary[label] = node.unary[label]
        node.unary[label], node.known = -np.inf, False
        self.stack.append(node)
        self.node = child
        live = child.unary > -np.inf
        free = np.add.reduceat(live[:-1], self.begin[:-1]) > 1
        n_free = np.bincount(self.slot_factor, free[self.slot_owner], minlength=1)
        at = child.entries
        keep = live[self.label_of[self.entry_place[at]]] & free[self.entry_owner[at]]
        child.entries = at[keep & (n_free[self.entry_factor[at]] > 1)]
        minus, active = self.minus(child), []
        for g, rows in enumerate(child.active):  # tables with one free variable, or none, go to its labels
            _, own, _, owners = self.groups[g]
            open_axes = free[owners[rows]]
            few = open_axes.sum(axis=1) < 2
            active.append(rows[~few])
            axis_of = open_axes.argmax(axis=1)
            for axis, at in enumerate(own):
                chosen = rows[few & (axis_of == axis)]
                if len(chosen):
                    block = self.blocks(child, g, chosen, minus)
                    best = block.max(axis=tuple(k + 1 for k in range(len(own)) if k != axis))
                    self.add(child, at[chosen].ravel(), best.ravel())
        child.active = active

    def end(self) -> bool:
        """The node is done with; is the tree?"""
        bound = None if self.node.over else self.bound(self.node)
        if not self.closed(bound):
            raise NotVerified(f"a node with the bound {bound} is left, above the threshold {self.threshold}")
        if not self.stack:
            return True
        self.node = self.stack.pop()
        return False

    def finish(self) -> None:
        """In the place of all its variables there is a constant."""
        state = self.state
        for s in self.scopes:
            if s in state.tables:
                state.take(s)
        for v in self.variables:
            state.remove(v)
        state.dead |= self.threshold is None
        if self.threshold is not None:
            state.constant += self.offset + self.reference + state.whole_steps(self.threshold - self.reference)


def exact_sum(x: Array) -> int | None:
    """The sum of whole numbers below 2^53; None: one of them is -inf."""
    if not len(x):
        return 0
    if x.min() == -np.inf:
        return None
    high = np.floor(x * 2.0**-26)
    return (int(high.sum()) << 26) + int((x - high * 2.0**26).sum())


# -- the proof -------------------------------------------------------------------------------------------------------


class Stream:
    """The bytes of a proof, unpacked as they are asked for; `kept` collects those of the step under way."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.packed, self.buffer = file, zlib.decompressobj(), b""
        self.kept = bytearray()
        if file.read(len(MAGIC)) != MAGIC:
            raise NotVerified("this is no proof: it does not begin with FGPROOF1")

    def take(self, n: int) -> bytes:
        parts, missing = [self.buffer], n - len(self.buffer)
        while missing > 0:
            source = self.packed.unconsumed_tail or self.file.read(1 << 16)
            try:
                more = self.packed.decompress(source, 1 << 20)
            except zlib.error:
                raise NotVerified("the proof is damaged: it cannot be unpacked") from None
            if not more and (not source or self.packed.eof):
                raise NotVerified("the proof ends too early")
            parts.append(more)
            missing -= len(more)
        whole = b"".join(parts)
        self.buffer = whole[n:]
        self.kept += whole[:n]
        return whole[:n]

    def numbers(self, kind: str, n: int) -> Array:
        return np.frombuffer(self.take(n * np.dtype(kind).itemsize), kind)

    def count(self, most: int) -> int:
        (n,) = struct.unpack("<q", self.take(8))
        if not 0 <= n <= most:
            raise NotVerified(f"a step announces {n} numbers where there can be {most} at most")
        return int(n)

    def ints(self, most: int) -> Array:
        return self.numbers("<i4", self.count(most)).astype(np.int64)

    def double(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])


class Verdict:
    """What was found: kind is "optimal", "infeasible" or "bound"."""

    def __init__(self, kind: str, bound: Fraction | None, score: Fraction | None, budget: Fraction, steps: int) -> None:
        self.kind, self.bound, self.score, self.budget, self.steps = kind, bound, score, budget, steps

    def __str__(self) -> str:
        if self.kind == "infeasible":
            return f"verified: infeasible ({self.steps} steps)"
        if self.score is None:
            return f"verified: bound {near(self.bound)!r} ({self.steps} steps)"
        said = "optimal" if self.kind == "optimal" else f"bound {near(self.bound)!r}"
        off = near(max(Fraction(0), (self.bound or 0) - self.score))
        told = f"score {near(self.score)!r}, bound minus score {off:.3g}, error budget {near(self.budget):.3g}"
        return f"verified: {said} ({told}, {self.steps} steps)"


def near(x: Fraction | None) -> float:
    return -math.inf if x is None else float(x)


class Check:
    """One proof about one model."""

    def __init__(self, model: str, stream: Stream, trimmed: Any = None) -> None:
        self.stream, self.trimmed, self.file, self.steps = stream, trimmed, File(model), 0
        line = stream.take(stream.count(1 << 12))
        try:
            head = json.loads(line)
            said = [int(head[name]) for name in ("variables", "labels", "factors")]
            floor = float.fromhex(head["floor"]) if head.get("floor") is not None else -math.inf
        except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError):
            raise NotVerified("the head of the proof cannot be read") from None
        if said != [len(self.file.cards), sum(self.file.cards), self.file.factors]:
            raise NotVerified("this is a proof of another model: it has other variables, labels or factors")
        if not floor < math.inf:
            raise NotVerified("the floor of the proof is no number")
        self.state = State(self.file, floor)
        self.tree: Tree | None = None
        self.mute = 0  # trimming: the depth of a branch that was closed when it began
        self.solution: Fraction | None = None
        self.n_labels = sum(self.file.cards)
        self.keep()

    def keep(self) -> None:
        if self.mute and self.tree is not None and len(self.tree.stack) < self.mute:
            self.mute = 0
        if self.trimmed is not None and (not self.mute or self.stream.kept[:1] == b"K"):
            self.trimmed(bytes(self.stream.kept))
        self.stream.kept.clear()

    def run(self) -> Verdict:
        rules = {b"S": self.labeling, b"X": self.eliminate, b"T": self.plant}
        inside = {b"K": self.threshold, b"M": self.messages, b"R": self.remove, b"B": self.branch, b"E": self.end}
        while True:
            self.steps += 1
            rule = self.stream.take(1)
            if rule == b"Q":
                return self.conclude()
            step = inside.get(rule) if self.tree else rules.get(rule)
            if step is None:
                raise NotVerified(f"there is no rule {rule!r} here")
            step()
            self.keep()

    def variable(self, v: int) -> int:
        if not 0 <= v < len(self.file.cards) or self.state.gone[v]:
            raise NotVerified(f"there is no variable {v}, or none any more")
        return v

    def label(self, v: int, a: int) -> int:
        if not 0 <= a < self.file.cards[self.variable(v)]:
            raise NotVerified(f"variable {v} has no label {a}")
        return a

    def labeling(self) -> None:
        labels = self.stream.numbers("<i4", len(self.file.cards)).tolist()
        if any(not 0 <= a < k for a, k in zip(labels, self.file.cards, strict=True)):
            raise NotVerified("the solution has a label that is not there")
        score = self.file.score(labels)
        if score is None:
            raise NotVerified("the solution is forbidden by the model")
        if self.solution is None or score > self.solution:
            self.solution = score

    def eliminate(self) -> None:
        for v in self.stream.ints(len(self.file.cards)).tolist():
            self.state.eliminate(self.variable(v))

    def plant(self) -> None:
        variables = self.stream.ints(len(self.file.cards)).tolist()
        counts = self.stream.numbers("<i4", len(variables)).tolist()
        if any(k < 1 for k in counts) or sum(counts) > self.n_labels:
            raise NotVerified("the tree lists labels that are not there")
        labels = self.stream.numbers("<i4", sum(counts)).tolist()
        arities = self.stream.ints(1 << 28)
        if ((arities < 2) | (arities > min(64, len(variables)))).any():
            raise NotVerified("the tree lists a factor with too few or too many variables")
        flat = self.stream.numbers("<i4", int(arities.sum())).tolist()
        if any(not 0 <= k < len(variables) for k in flat):
            raise NotVerified("the tree lists a factor with a variable that it does not list")
        ends, places = np.cumsum(counts).tolist(), np.cumsum(arities).tolist()
        listed = [labels[e - k : e] for e, k in zip(ends, counts, strict=True)]
        factors = [flat[e - k : e] for e, k in zip(places, arities.tolist(), strict=True)]
        self.tree = Tree(self.state, variables, listed, factors)

    def threshold(self) -> None:
        assert self.tree is not None
        lead = self.stream.double()
        labels = self.stream.numbers("<i4", len(self.tree.variables)).astype(np.int64)
        self.tree.raise_threshold(labels, lead)

    def messages(self) -> None:
        assert self.tree is not None
        width, exponent = struct.unpack("<Bh", self.stream.take(3))
        if width not in (1, 2, 4, 8):
            raise NotVerified(f"messages of {width} bytes")
        n = self.stream.count(len(self.tree.entry_place))
        self.tree.send(self.stream.numbers(f"<i{width}", n), exponent)

    def remove(self) -> None:
        assert self.tree is not None
        self.tree.remove(self.stream.ints(self.n_labels))

    def branch(self) -> None:
        assert self.tree is not None
        self.tree.branch(int(self.stream.numbers("<i4", 1)[0]))
        if self.trimmed is not None and not self.mute and self.tree.closed(self.tree.bound(self.tree.node)):
            self.keep()
            self.tree.node.over, self.mute = True, len(self.tree.stack)  # up to its end, steps are not needed

    def end(self) -> None:
        assert self.tree is not None
        if self.tree.end():
            self.tree.finish()
            self.tree = None

    def conclude(self) -> Verdict:
        """What is left says what was proven; the proof says what it claims, which must be that."""
        if self.tree is not None:
            raise NotVerified("the proof ends in the middle of a tree")
        claim, said = self.stream.take(1), self.stream.double()
        state, unit = self.state, power(self.state.unit)
        bound = state.bound()
        if bound is not None and state.first_step:
            bound = state.origin + (bound - state.origin) // state.first_step * state.first_step
        if state.floor is not None:
            bound = state.floor if bound is None else max(bound, state.floor)
        value = None if bound is None else bound * unit
        if self.solution is not None and (value is None or value + unit < self.solution):
            raise NotVerified("the steps contradict the solution, whose score is above their bound")
        budget = state.budget * unit
        cutoff = max(self.file.cutoff, said) if claim == b"I" else self.file.cutoff
        verdict = Verdict("bound", value, self.solution, budget, self.steps)
        if value is None or (cutoff > -math.inf and value <= Fraction(cutoff)):
            verdict.kind = "infeasible"
        elif self.solution is not None and value - self.solution <= budget:
            verdict.kind = "optimal"
        kinds = {b"O": "optimal", b"I": "infeasible", b"U": "bound"}
        if claim not in kinds or math.isnan(said):
            raise NotVerified("the proof does not say what it proves")
        if kinds[claim] != verdict.kind and claim != b"U":
            raise NotVerified(f"the proof claims {kinds[claim]}, and shows {verdict}")
        if claim == b"O" and abs(Fraction(said) - (self.solution or 0)) > budget + Fraction(abs(said)) * power(-40):
            raise NotVerified(f"the proof claims the score {said!r}, its solution has {near(self.solution)!r}")
        if claim == b"U" and value is not None and said < math.inf and value > Fraction(said):
            raise NotVerified(f"the proof claims the bound {said!r}, and shows {verdict}")
        self.keep()
        return verdict


def verify(model: str, proof: str, trim: str | None = None) -> Verdict:
    """Raises NotVerified, with the step and why. `trim`: a file for the steps that were needed."""
    check = None
    try:
        with open(proof, "rb") as file:
            if trim is None:
                check = Check.__new__(Check)
                check.__init__(model, Stream(file))  # type: ignore[misc]
                return check.run()
            packer = zlib.compressobj(6)
            with open(trim, "wb") as out:
                out.write(MAGIC)
                check = Check(model, Stream(file), lambda step: out.write(packer.compress(step)))
                verdict = check.run()
                out.write(packer.flush())
            return verdict
    except NotVerified as error:
        steps = getattr(check, "steps", 0)
        raise NotVerified(f"not verified: step {steps}: {error}") from None
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, IndexError, OverflowError, MemoryError) as error:
        steps = getattr(check, "steps", 0)
        raise NotVerified(f"not verified: step {steps}: the file cannot be used ({error})") from None


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 4) or (len(arguments) == 4 and arguments[2] != "--trim"):
        print("usage: checker.py MODEL PROOF [--trim OUT]", file=sys.stderr)
        return 3
    try:
        print(verify(arguments[0], arguments[1], arguments[3] if len(arguments) == 4 else None))
    except NotVerified as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
