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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO

import numpy

np: Any = numpy
Array = Any
MAGIC = b"FGPROOF2\n"
BITS = 44  # bits of the largest difference of scores in a table
LARGEST = 2.0**50  # the largest entry of a table in units: sums of a few stay below 2^53
MOST_ENTRIES = 1 << 24  # entries of one table that a step makes; 4 times as many in a model, 8 times in a tree
MOST_MEMORY = 1 << 30  # bytes that the way back from a node to the root of its tree may take


class NotVerified(Exception):
    """Why a proof, or a model, is not accepted."""


def need(condition: Any, why: str) -> None:
    if not condition:
        raise NotVerified(why)


# -- the model as it is in its file --------------------------------------------------------------------------------


class File:
    """Label counts, and terms: a tuple of variables and the scores of their states, last variable fastest."""

    def __init__(self, path: str) -> None:
        self.cards: list[int] = []
        self.terms: list[tuple[tuple[int, ...], Array]] = []
        self.cutoff, self.factors, self.entries = -math.inf, 0, 0
        self.read_npz(path) if path.endswith(".npz") else self.read_uai(path)

    def declare(self, cards: list[int]) -> None:
        need(min(cards, default=1) > 0, "the model has a variable without labels")
        self.cards = cards
        self.count(sum(cards))

    def count(self, more: int) -> None:
        self.entries += more
        need(self.entries <= 4 * MOST_ENTRIES, f"the model has more than {4 * MOST_ENTRIES} entries in its tables")

    def add(self, scope: tuple[int, ...], scores: Array) -> None:
        fits = len(set(scope)) == len(scope) and all(0 <= v < len(self.cards) for v in scope)
        need(fits, "the model has a factor with a variable that is repeated or not there")
        shape = tuple([self.cards[v] for v in scope])
        need(scores.shape == shape, "the model has a table whose size does not fit its variables")
        self.terms.append((scope, scores))

    def read_uai(self, path: str) -> None:
        with open(path, encoding="utf-8") as stream:
            words = stream.read().split()
        logarithms, at = path.endswith(".LG"), 0

        def whole(most: int) -> int:
            nonlocal at
            word = words[at] if at < len(words) else "the end"
            ok = word.isdecimal() and len(word) <= 10 and int(word) <= most
            need(ok, f"the model is no UAI file: {word[:40]!r} where a whole number was expected")
            at += 1
            return int(word)

        known = words and words[0].upper() in ("MARKOV", "BAYES")
        need(known, "the model is no UAI file: it does not begin with MARKOV or BAYES")
        at = 1
        self.declare([whole(1 << 31) for _ in range(whole(len(words)))])
        scopes = [tuple(whole(1 << 31) for _ in range(whole(64))) for _ in range(whole(len(words)))]
        self.factors = sum(len(scope) > 1 for scope in scopes)
        for scope in scopes:
            need(all(v < len(self.cards) for v in scope), "the model has a factor with a variable that is not there")
            shape, n = [self.cards[v] for v in scope], whole(len(words))
            fits = n == math.prod(shape) and at + n <= len(words)
            need(fits, "the model has a table whose size does not fit its variables")
            self.count(n)
            try:
                values = np.array(words[at : at + n], np.float64)
            except ValueError:
                raise NotVerified("the model has an entry that is no number") from None
            if not logarithms:
                zeros = [words[at + k].lower().split("e")[0] for k in np.flatnonzero(values == 0)]
                fits = not (values < 0).any() and not any(set(zero) - set("0.+-") for zero in zeros)
                need(fits, "the model has a potential below 0, or one too small for a double")
                with np.errstate(divide="ignore"):
                    values = np.log(values)
            at += n
            self.add(scope, values.reshape(shape))
        need(at == len(words), "the model has text after its last table")

    def read_npz(self, path: str) -> None:
        with zipfile.ZipFile(path) as archive:
            stored = all(not member.compress_type for member in archive.infolist())
            need(stored, "the model's archive is compressed; fginfer writes it stored")
        with np.load(path, allow_pickle=False) as members:
            at = {name: members[name] for name in members.files}
        known = "fginfer" in at and 1 <= int(at["fginfer"]) <= 5
        need(known, "the archive is no model of fginfer, or of a version that is not known here")
        need("rules" not in at, "the model has constraints; lower them first (fginfer.read(file).lowered().graph)")
        self.declare(at["cards"].astype(np.int64).tolist())
        self.factors = len(at["factor_table"])
        self.cutoff = float(at.get("cutoff", -math.inf))
        arity, dims, values = at["table_arity"].tolist(), at["dims"].tolist(), np.asarray(at["values"], np.float64)
        kinds = at["table_kind"].tolist() if "table_kind" in at else [0] * len(arity)
        parameters = at.get("params", np.zeros(2 * len(arity))).reshape(-1, 2)
        begin = np.concatenate(([0], np.cumsum(self.cards, dtype=np.int64))).tolist()
        unary = np.asarray(at["unary"], np.float64)
        for v in range(len(self.cards)):
            self.add((v,), unary[begin[v] : begin[v + 1]])
        self.add((), np.array(float(at["constant"])))
        tables, d, e = [], 0, 0
        for kind, k, p in zip(kinds, arity, parameters, strict=True):
            shape = () if kind else tuple(dims[d : d + k])
            size = 0 if kind else math.prod(shape)
            tables.append(p if kind else values[e : e + size].reshape(shape))
            d, e = d + len(shape), e + size
        weights = at.get("factor_weight", np.ones(self.factors)).tolist()
        turned = at.get("factor_transposed", np.zeros(self.factors, bool)).tolist()
        place, ends, variables = 0, at.get("var_begin"), at["vars"].tolist()
        for f, t in enumerate(at["factor_table"].tolist()):
            k = (2 if kinds[t] else arity[t]) if ends is None else int(ends[f + 1] - ends[f])
            scope, place, table = tuple(variables[place : place + k]), place + k, tables[t]
            self.count(math.prod(self.cards[v] for v in scope))
            if kinds[t]:
                table = implicit(kinds[t], table, [self.cards[v] for v in scope])
            elif turned[f]:
                table = table.T
            with np.errstate(invalid="ignore"):
                self.add(scope, weights[f] * table if weights[f] != 1 else table)
        k = 0
        for v in at.get("leftover_var", np.zeros(0, int)).tolist():
            size = 1 if v < 0 else self.cards[v]
            self.add((v,) if v >= 0 else (), at["leftover"][k : k + size].reshape((size,) if v >= 0 else ()))
            k += size

    def score(self, labels: Array) -> Fraction | None:
        """Exact; None: forbidden."""
        picked = [float(scores[tuple([labels[v] for v in scope])]) for scope, scores in self.terms]
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


class State:
    """The model under way. `tables[scope]` (scopes ascend; every variable that is left has one of its own) hold whole
    numbers and -inf, with maximum 0: the maxima are in `constant`."""

    def __init__(self, file: File, floor: float) -> None:
        self.cards, self.constant, self.dead = list(file.cards), 0, False
        sizes = np.array([scores.size for _, scores in file.terms], np.int64)
        ends = np.cumsum(sizes)
        scores = np.concatenate([np.zeros(0), *(s.ravel() for _, s in file.terms)])
        need(not (np.isnan(scores) | (scores == np.inf)).any(), "the model has a score that is neither finite nor -inf")
        tops = np.maximum.reduceat(scores, ends - sizes) if len(sizes) else np.zeros(0)
        self.unit = e = self.choose_unit(scores, np.repeat(tops, sizes), tops[tops > -np.inf], floor)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            s = np.ldexp(scores, -e)
            up = np.where(s == -np.inf, s, np.maximum(np.ceil(s), -(2.0**60)))
            up[(scores > 0) & (up <= 0)] = 1  # what was too small for a double
            up[(scores > -np.inf) & (s == -np.inf)] = -(2.0**60)
            rounded = bool((np.isfinite(s) & (up != s)).any() or ((s == 0) & (scores != 0)).any())
        tops = np.maximum.reduceat(up, ends - sizes) if len(sizes) else np.zeros(0)
        whole = np.where(tops > -np.inf, tops, 0).astype(np.int64)
        finite = up > -np.inf  # differences of doubles beyond 2^53 may be rounded, those of integers are not
        less = np.where(finite, up, 0).astype(np.int64) - np.repeat(whole, sizes)
        table = np.where(finite, np.maximum(less, -(1 << 61)).astype(np.float64), -np.inf)
        self.origin = sum(whole.tolist())
        self.floor: int | None = None if floor == -math.inf else floored(floor, e)
        worst = -math.inf if self.floor is None else float(self.floor - self.origin)
        worst = math.nextafter(worst, -math.inf) if abs(worst) > 2.0**53 else worst
        table[table <= worst] = -np.inf  # whoever uses it is not above the floor
        # All labelings differ by multiples of a step, once rounded; a small one tells nothing.
        step = int(np.gcd.reduce(table[table > -np.inf].astype(np.int64), initial=0))
        self.step = self.first_step = step if step > 64 * len(sizes) else 1  # entries of tables are multiples of it
        # We take one unit for each term, the rest is for whoever wrote the proof.
        self.budget = 64 * len(sizes) if rounded or self.step == 1 else 0
        self.tables: dict[tuple[int, ...], Array] = {}
        self.entries = 0  # all tables together have so many
        self.of: list[set[tuple[int, ...]]] = [set() for _ in self.cards]
        for v, k in enumerate(self.cards):
            self.put((v,), np.zeros(k))
        for (scope, scores), part in zip(file.terms, np.split(table, ends[:-1]), strict=True):
            self.put(scope, part.reshape(scores.shape))
        self.constant += self.origin

    @staticmethod
    def choose_unit(scores: Array, above: Array, tops: Array, floor: float) -> int:
        """So that differences that count have some BITS bits, and every score less than 62."""
        room = math.fsum(tops) - floor
        with np.errstate(over="ignore", invalid="ignore"):
            below = above - scores
            used = below[(scores > -np.inf) & (below <= room * (1 + 1e-9))]
        widest, largest = float(used.max(initial=0)), float(np.abs(tops).max(initial=0))
        need(widest < np.inf, "the model's scores are too large")
        wide, large = (math.frexp(x)[1] if x else -1000 for x in (widest, largest))
        return max(-1000, wide - BITS, large - 60 if widest else large - BITS)

    def put(self, scope: tuple[int, ...], table: Array) -> None:
        """Adds a table. Entries that are too small are raised: a bound stays one."""
        if scope != tuple(sorted(scope)):
            order = sorted(range(len(scope)), key=scope.__getitem__)
            scope, table = tuple([scope[k] for k in order]), table.transpose(order)
        if scope in self.tables:
            table = self.take(scope) + table
        top = float(table.max())
        self.dead |= top == -np.inf
        self.constant += int(top) if top > -np.inf else 0
        if scope:
            self.tables[scope] = self.raised(table - top if top > -np.inf and top else table)
            self.entries += table.size
            need(self.entries <= 8 * MOST_ENTRIES, "the steps make too many tables")
            for v in scope:
                self.of[v].add(scope)

    def raised(self, table: Array) -> Array:
        """Entries below what fits are raised to it: bounds stay bounds, differences do not stay what they were."""
        low = (table < -LARGEST) & (table > -np.inf)
        if not low.any():
            return table
        self.step = 1
        return np.where(low, -LARGEST, table)

    def take(self, scope: tuple[int, ...]) -> Array:
        for v in scope:
            self.of[v].discard(scope)
        self.entries -= self.tables[scope].size
        return self.tables.pop(scope)

    def has(self, v: int) -> bool:
        return 0 <= v < len(self.cards) and (v,) in self.tables

    def eliminate(self, v: int) -> None:
        """The variable goes; a table over its neighbours says what it does at best."""
        need(self.has(v), f"there is no variable {v}, or none any more")
        own = self.take((v,))
        live, scopes = np.flatnonzero(own > -np.inf), sorted(self.of[v])
        if len(live) == 1:  # known: every table is looked up on its own; the only label has the maximum, 0
            for s in scopes:
                self.put(tuple([w for w in s if w != v]), self.take(s).take(int(live[0]), s.index(v)))
            return
        others = tuple(sorted({w for s in scopes for w in s} - {v}))
        shape = [self.cards[w] for w in others]
        size = math.prod(shape)
        need(size <= MOST_ENTRIES, f"to eliminate variable {v} takes a table of more than {MOST_ENTRIES} entries")
        tables = [(s, np.moveaxis(self.take(s), s.index(v), 0)) for s in scopes]
        best, some = np.full(shape, -np.inf), max(1, MOST_ENTRIES // size)
        for labels in (live[k : k + some] for k in range(0, len(live), some)):
            total = own[labels].reshape([-1] + [1] * len(others))
            for s, table in tables:
                fit = [len(labels)] + [self.cards[w] if w in s else 1 for w in others]
                total = self.raised(total) + table[labels].reshape(fit)
            best = np.maximum(best, total.max(axis=0))
        self.put(others, best)

    def replace(self, v: int, label: int, by: int) -> None:
        """Whoever has the label loses nothing by having the other one: the label goes."""
        need(self.has(v), f"there is no variable {v}, or none any more")
        need(0 <= label < self.cards[v] and 0 <= by < self.cards[v] and label != by, f"variable {v} has no such labels")
        gains = []
        for scope in sorted(self.of[v]):
            mine, other = (self.tables[scope].take(a, scope.index(v)) for a in (label, by))
            allowed = mine > -np.inf
            gains.append(float((other[allowed] - mine[allowed]).min(initial=np.inf)))
        good = np.inf in gains or (-np.inf not in gains and math.fsum(gains) >= 0)  # fsum: the sign is exact
        need(good, f"label {by} of variable {v} is not always as good as label {label}")
        table = self.take((v,)).copy()
        table[label] = -np.inf
        self.put((v,), table)

    def keep(self, v: int, labels: Array) -> None:
        """The other labels of a variable go; those that are left are numbered anew."""
        self.dead |= not len(labels)
        if 0 < len(labels) < self.cards[v]:
            self.cards[v] = len(labels)
            for s in sorted(self.of[v]):
                self.put(s, self.take(s).take(labels, s.index(v)))

    def bound(self) -> int | None:
        """The sum of all maxima; None: no labeling is left."""
        return None if self.dead else self.constant


# -- trees -----------------------------------------------------------------------------------------------------------


def ragged(first: Array, count: Array) -> tuple[Array, Array]:
    """Numbers first[k], first[k] + 1, ... (count[k] of them) for each k, and where those of each k begin."""
    ends = count.cumsum()
    starts = ends - count
    return np.arange(int(ends[-1]) if len(ends) else 0) + (first - starts).repeat(count), starts


def offsets(shape: tuple[int, ...], axes: list[int]) -> Array:
    """Where in a table of this shape the states of some axes are, the others being 0."""
    at = np.zeros(1, np.int64)
    for axis in axes:
        at = (at[:, None] + np.arange(shape[axis]) * math.prod(shape[axis + 1 :])).ravel()
    return at


def exact_sum(x: Array) -> int | None:
    """The sum of whole numbers below 2^53; None: one of them is -inf."""
    if not len(x) or x.min() == -np.inf:
        return None if len(x) else 0
    high = np.floor(x * 2.0**-26)
    return (int(high.sum()) << 26) + int((x - high * 2.0**26).sum())


class Tree:
    """A search over some variables, no table of which has others.

    `value` has the entries of all terms, one after the other: the labels of the variables, then the tables. A *link*
    leads from a table to a term with some of its variables, and has a *place* for each entry of that term. A message at
    a place is taken from all entries of the table that agree with the entry, and added to it. `top` has the maxima
    of the terms, but for those that are `stale`. Whatever changes is written to the `trail`, which leads back."""

    def __init__(self, state: State, variables: list[int], tables: list[list[int]], links: list[list[int]]) -> None:
        self.state, self.n = state, len(variables)
        number = {v: k for k, v in enumerate(variables)}
        there = len(number) == self.n and all(state.has(v) for v in variables)
        need(there, "the tree lists a variable twice, or one that is not there")
        need(all(0 <= k < self.n for t in tables for k in t), "the tree lists a table with a variable it does not list")
        listed = [tuple(sorted([variables[k] for k in t])) for t in tables]
        self.scopes = [(v,) for v in variables] + list(
            dict.fromkeys([*listed, *(s for v in variables for s in state.of[v] if len(s) > 1)])
        )
        fits = all(len(set(s)) == len(s) >= 1 and number.keys() >= set(s) for s in self.scopes)
        need(fits, "the tree leaves out a variable that shares a table with one it lists")
        term = {s: k for k, s in enumerate(self.scopes)}
        shapes = [tuple([state.cards[v] for v in s]) for s in self.scopes]
        self.size = np.array([math.prod(shape) for shape in shapes], np.int64)
        need(sum(map(float, self.size)) <= 8 * MOST_ENTRIES, "the tables of the tree are too large")
        self.begin = np.cumsum(self.size) - self.size
        self.n_labels = int(self.size[: self.n].sum())
        self.owner = np.repeat(np.arange(self.n), self.size[: self.n])
        zeros = [np.zeros(0)]
        self.value = np.concatenate(
            zeros + [state.tables[s].ravel() if s in state.tables else np.zeros(math.prod(z))
                     for s, z in zip(self.scopes, shapes, strict=True)]
        )  # fmt: skip
        self.start = self.value.copy()  # before all messages
        # The links of listed tables to their variables come first, then those that are listed, then all that misses.
        pairs = [(term[s], term[variables[k],]) for s, t in zip(listed, tables, strict=True) for k in t if len(s) > 1]
        ok = all(0 <= a < len(tables) and 0 <= b < len(tables) for a, b in links)
        ok = ok and all(set(listed[a]) > set(listed[b]) for a, b in links)
        need(ok, "the tree lists a link that does not lead from a table to one of some of its variables")
        pairs += [(term[listed[a]], term[listed[b]]) for a, b in links]
        n_listed = len(pairs)
        own = {(t, term[v,]): 0 for s, t in term.items() if len(s) > 1 for v in s}
        said = set(pairs)
        pairs += [pair for pair in own if pair not in said]
        own.update({pair: k for k, pair in enumerate(pairs) if pair in own})
        # Links of one kind share where entries agree with those of the receiver: `pool` holds both parts.
        kinds: dict[Any, tuple[int, int, int]] = {}
        pool, at, kind = [np.zeros(0, np.int64)], 0, []
        for a, b in pairs:
            axes = [self.scopes[a].index(v) for v in self.scopes[b]]
            key = (shapes[a], tuple(axes))
            if key not in kinds:
                states = offsets(shapes[a], axes)
                rest = offsets(shapes[a], [k for k in range(len(shapes[a])) if k not in axes])
                pool += [states, rest]
                kinds[key] = (at, at + len(states), len(rest))
                at += len(states) + len(rest)
            kind.append(kinds[key])
        self.pool = np.concatenate(pool)
        self.sender, self.receiver = np.array(pairs, np.int64).reshape(-1, 2).T
        self.states, self.rest, self.n_rest = np.array(kind, np.int64).reshape(-1, 3).T
        places = self.size[self.receiver]
        self.place = np.cumsum(places) - places  # the first one of each link
        self.link = np.repeat(np.arange(len(pairs)), places)  # whose place each one is
        self.n_places = int(places[:n_listed].sum())  # that messages may have
        self.own = np.array(sorted(own.values(), key=lambda k: self.receiver[k]), np.int64)  # by variable
        self.degree = np.bincount(self.receiver[self.own], minlength=self.n)
        self.first_own = np.cumsum(self.degree) - self.degree
        self.top, self.stale = np.zeros(len(term)), np.ones(len(term), bool)
        self.open = np.arange(len(term)) >= self.n  # tables with two variables or more that are free
        self.trail: list[tuple[Array, Array, Array]] = []
        self.nodes: list[tuple[int, int, Array, Array]] = []
        self.memory = 0
        self.threshold: int | None = None

    def remember(self, array: Array, at: Array) -> None:
        """What is there now, for the way back; from the root nobody comes back."""
        if self.nodes:
            self.trail.append((array, at, array[at]))
            self.memory += 64 + 2 * at.nbytes
            need(self.memory <= MOST_MEMORY, "the tree is too deep")

    def entries(self, places: Array) -> tuple[Array, Array, Array]:
        """The entries of tables that agree with places of messages, how many each has, and where they begin."""
        link = self.link[places]
        count = self.n_rest[link]
        first = self.begin[self.sender[link]] + self.pool[self.states[link] + places - self.place[link]]
        at, starts = ragged(self.rest[link], count)
        return self.pool[at] + first.repeat(count), count, starts

    def rows(self, labels: Array) -> tuple[Array, Array]:
        """The places of labels in the links of all tables of their variables, and how many each has."""
        variables = self.owner[labels]
        links, _ = ragged(self.first_own[variables], self.degree[variables])
        count = self.degree[variables]
        return self.place[self.own[links]] + (labels - self.begin[variables]).repeat(count), count

    def bound(self) -> int | None:
        """The sum of all maxima; None: no labeling is left."""
        terms = np.flatnonzero(self.stale)
        if len(terms):
            at, starts = ragged(self.begin[terms], self.size[terms])
            self.remember(self.top, terms)
            self.top[terms] = np.maximum.reduceat(self.value[at], starts)
            self.stale[terms] = False
        return exact_sum(self.top)

    def closed(self) -> bool:
        bound = self.bound()
        return bound is None or (self.threshold is not None and bound <= self.threshold)

    # the steps

    def send(self, places: Array, amounts: Array) -> None:
        """Taken from entries of tables, added to those of their receivers."""
        link = self.link[places]
        rows, count, _ = self.entries(places)
        into = self.begin[self.receiver[link]] + places - self.place[link]
        at, by = np.concatenate([into, rows]), np.concatenate([amounts, -amounts.repeat(count)])
        self.remember(self.value, at)
        # Small sums are exact in any order. Else gains come first, and are exact; of what is lost then only sums below
        # the lowest are rounded.
        every: Any = [(slice(None), 2)] if np.abs(by).sum() <= LARGEST else [(by > 0, 8), (by < 0, 2)]
        for some, most in every:
            np.add.at(self.value, at[some], by[some])
            after = self.value[at]
            need(after.max(initial=0) <= most * LARGEST, "the messages are too large")
        low = (after < -2 * LARGEST) & (after > -np.inf)
        if low.any():  # raised: a bound stays one
            self.value[at[low]] = -2 * LARGEST
        self.stale[self.sender[link]] = self.stale[self.receiver[link]] = True

    def forbid(self, labels: Array) -> None:
        places, _ = self.rows(labels)
        at = np.concatenate([labels, self.entries(places)[0]])
        self.remember(self.value, at)
        self.value[at] = -np.inf
        self.stale[self.owner[labels]] = self.stale[self.sender[self.link[places]]] = True

    def falls(self, labels: Array) -> Array:
        """How far the bound falls with each of these labels, which is no more than 0."""
        places, count = self.rows(labels)
        at, _, starts = self.entries(places)
        best = np.maximum.reduceat(self.value[at], starts) if len(at) else np.zeros(0)
        falls = self.value[labels] - self.top[self.owner[labels]]
        np.add.at(falls, np.arange(len(labels)).repeat(count), best - self.top[self.sender[self.link[places]]])
        return falls

    def remove(self, labels: Array) -> None:
        """Labels with which nothing above the threshold is left: with each of them the bound falls to it. What some of
        them are worth may have to be seen first, so those that are proven go, and the others are looked at again."""
        need(((labels >= 0) & (labels < self.n_labels)).all(), "a label that is not there is removed")
        while len(labels) and (bound := self.bound()) is not None:
            room = -np.inf if self.threshold is None else float(self.threshold - bound)
            gone = self.falls(labels) <= (room if room > -(2.0**53) else -np.inf)  # sums below that are not exact
            v = int(self.owner[labels[0]])
            name, a = self.scopes[v][0], int(labels[0] - self.begin[v])
            need(gone.any(), f"label {a} of variable {name} may be in a labeling above the threshold")
            self.forbid(labels[gone])
            labels = labels[~gone]

    def branch(self, label: int) -> None:
        """The child in which a variable has the label; the node goes on without it. Tables with one free variable that
        is left give what they have to its labels."""
        need(0 <= label < self.n_labels and self.value[label] > -np.inf, "a branch on a label that is gone")
        self.nodes.append((len(self.trail), label, self.stale.copy(), self.open.copy()))
        self.memory += 2 * len(self.open)
        v = int(self.owner[label])
        others = np.arange(self.begin[v], self.begin[v] + self.size[v])
        self.forbid(others[(others != label) & (self.value[others] > -np.inf)])
        free = np.bincount(self.owner, self.value[: self.n_labels] > -np.inf, self.n) > 1
        own = self.own[free[self.receiver[self.own]]]
        left = np.bincount(self.sender[own], minlength=len(self.open))
        links = own[self.open[self.sender[own]] & (left[self.sender[own]] == 1)]
        self.open &= left > 1
        places, _ = ragged(self.place[links], self.size[self.receiver[links]])
        if len(places):
            labels = self.begin[self.receiver[self.link[places]]] + places - self.place[self.link[places]]
            places, labels = places[(alive := self.value[labels] > -np.inf)], labels[alive]
            at, _, starts = self.entries(places)
            best = np.maximum.reduceat(self.value[at], starts)
            self.send(places[best > -np.inf], best[best > -np.inf])
            self.forbid(np.unique(labels[best == -np.inf]))

    def end(self) -> bool:
        """The node is done with; is the tree?"""
        need(self.closed(), "a node is left whose bound is above the threshold")
        if not self.nodes:
            return True
        mark, label, self.stale, self.open = self.nodes.pop()
        self.memory -= 2 * len(self.open)
        while len(self.trail) > mark:
            array, at, old = self.trail.pop()
            array[at] = old
            self.memory -= 64 + 2 * at.nbytes
        self.forbid(np.array([label]))
        return False

    def raise_threshold(self, labels: Array, lead: float) -> None:
        """A labeling of what the tree is about, and how far above it the threshold is; or no labels, and a score of
        the model."""
        need(abs(lead) < np.inf, "the threshold is not finite")
        if (labels == -1).all():
            self.set_threshold(floored(lead, self.state.unit) - self.state.constant)
            return
        there = ((labels >= 0) & (labels < self.size[: self.n])).all() and lead >= 0
        need(there, "the threshold has a label that is not there, or is below its labeling")
        own = self.own
        at = self.begin + np.bincount(self.sender[own], self.pool[self.states[own] + labels[self.receiver[own]]],
                                      len(self.begin)).astype(np.int64)  # fmt: skip
        at[: self.n] += labels
        value = exact_sum(self.start[at])
        if value is None:
            raise NotVerified("the threshold's labeling is forbidden")
        self.set_threshold(value + floored(lead, self.state.unit))

    def set_threshold(self, value: int) -> None:
        self.threshold = value if self.threshold is None else max(value, self.threshold)

    def leave(self) -> None:
        """The model takes the place of the tree again, without the labels that are gone."""
        state = self.state
        low = self.threshold is None or (state.floor is not None and self.threshold <= state.floor - state.constant)
        need(low and not self.nodes, "a tree is left whose threshold is above the floor, or below its root")
        for v, k, n in zip(self.scopes, self.begin.tolist(), self.size[: self.n].tolist(), strict=False):
            state.keep(v[0], np.flatnonzero(self.value[k : k + n] > -np.inf))

    def finish(self) -> None:
        """In the place of all its variables there is a constant."""
        state = self.state
        for s in self.scopes:
            if s in state.tables:
                state.take(s)
        state.dead |= self.threshold is None
        if self.threshold is not None:
            state.constant += self.threshold // state.step * state.step  # all scores in a tree are such steps


# -- the proof -------------------------------------------------------------------------------------------------------


class Stream:
    """The bytes of a proof, unpacked as they are asked for."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.packed, self.buffer, self.at = file, zlib.decompressobj(), b"", 0
        need(file.read(len(MAGIC)) == MAGIC, "this is no proof: it does not begin with FGPROOF2")

    def take(self, n: int) -> bytes:
        if self.at + n > len(self.buffer):
            parts, missing = [self.buffer[self.at :]], n - len(self.buffer) + self.at
            while missing > 0:
                source = self.packed.unconsumed_tail or self.file.read(1 << 16)
                try:
                    more = self.packed.decompress(source, 1 << 20)
                except zlib.error:
                    raise NotVerified("the proof is damaged: it cannot be unpacked") from None
                need(more or (source and not self.packed.eof), "the proof ends too early")
                parts.append(more)
                missing -= len(more)
            self.buffer, self.at = b"".join(parts), 0
        whole = self.buffer[self.at : self.at + n]
        self.at += n
        return whole

    def numbers(self, kind: str, n: int) -> Array:
        return np.frombuffer(self.take(n * np.dtype(kind).itemsize), kind)

    def count(self, most: int) -> int:
        (n,) = struct.unpack("<q", self.take(8))
        need(0 <= n <= most, f"a step announces {n} numbers where there can be {most} at most")
        return int(n)

    def ints(self, most: int) -> Array:
        return self.numbers("<i4", self.count(most)).astype(np.int64)

    def packed_ints(self, most: int, sign: str) -> Array:
        """A count, the width of a number in bytes, and the numbers."""
        n, width = self.count(most), self.take(1)[0]
        need(width in (1, 2, 4, 8), f"numbers of {width} bytes")
        return self.numbers(f"<{sign}{width}", n).astype(np.int64)

    def double(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])


@dataclass
class Verdict:
    """What was found: kind is "optimal", "infeasible" or "bound"."""

    kind: str
    bound: Fraction | None
    score: Fraction | None
    budget: Fraction
    steps: int

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

    def __init__(self, model: str, stream: Stream) -> None:
        self.stream, self.steps, self.file = stream, 0, File(model)
        line = stream.take(stream.count(1 << 12))
        try:
            head = json.loads(line)
            said = [int(head[name]) for name in ("variables", "labels", "factors")]
            floor = float.fromhex(head["floor"]) if head.get("floor") is not None else -math.inf
        except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError):
            raise NotVerified("the head of the proof cannot be read") from None
        same = said == [len(self.file.cards), sum(self.file.cards), self.file.factors]
        need(same, "this is a proof of another model: it has other variables, labels or factors")
        need(floor < math.inf, "the floor of the proof is no number")
        self.state = State(self.file, floor)
        self.tree: Tree | None = None
        self.solution: Fraction | None = None

    def run(self) -> Verdict:
        while True:
            self.steps += 1
            rule = self.stream.take(1)
            if rule == b"Q":
                return self.conclude()
            self.step(rule)

    def step(self, rule: bytes) -> None:
        rules = {b"S": self.labeling, b"X": self.eliminate, b"D": self.replace, b"T": self.plant}
        inside = {b"K": self.threshold, b"M": self.messages, b"R": self.remove, b"B": self.branch, b"E": self.end,
                  b"L": self.leave}  # fmt: skip
        step = (inside if self.tree else rules).get(rule)
        if step is None:
            raise NotVerified(f"there is no rule {rule!r} here")
        step()

    def labeling(self) -> None:
        labels = self.stream.numbers("<i4", len(self.file.cards)).tolist()
        there = all(0 <= a < k for a, k in zip(labels, self.file.cards, strict=True))
        need(there, "the solution has a label that is not there")
        score = self.file.score(labels)
        if score is None:
            raise NotVerified("the solution is forbidden by the model")
        if self.solution is None or score > self.solution:
            self.solution = score

    def eliminate(self) -> None:
        for v in self.stream.ints(len(self.file.cards)).tolist():
            self.state.eliminate(v)

    def replace(self) -> None:
        self.state.replace(*self.stream.numbers("<i4", 3).tolist())

    def plant(self) -> None:
        variables = self.stream.ints(len(self.file.cards)).tolist()
        most = 4 * len(self.state.tables) + (1 << 16)
        arities = self.stream.ints(most)
        ok = ((arities >= 2) & (arities <= min(64, len(variables)))).all()
        need(ok, "the tree lists a table with too few or too many variables")
        flat, ends = self.stream.numbers("<i4", int(arities.sum())).tolist(), np.cumsum(arities).tolist()
        tables = [flat[e - k : e] for e, k in zip(ends, arities.tolist(), strict=True)]
        links = self.stream.ints(2 * most).tolist()
        self.tree = Tree(self.state, variables, tables, list(map(list, zip(links[::2], links[1::2], strict=True))))

    def threshold(self) -> None:
        assert self.tree is not None
        lead = self.stream.double()
        self.tree.raise_threshold(self.stream.numbers("<i4", self.tree.n).astype(np.int64), lead)

    def read_messages(self) -> tuple[Array, Array]:
        """Places ascend: how far each is from the one before it, then whole numbers times a power of two."""
        assert self.tree is not None
        (exponent,) = struct.unpack("<h", self.stream.take(2))
        gaps = self.stream.packed_ints(self.tree.n_places, "u")
        amounts = self.stream.packed_ints(self.tree.n_places, "i")
        ok = len(gaps) == len(amounts) and (gaps >= 0).all() and (gaps < self.tree.n_places).all()
        places = np.cumsum(gaps)
        need(ok and places.max(initial=0) < self.tree.n_places, "messages at places that are not there")
        with np.errstate(over="ignore"):
            amounts = np.ldexp(amounts.astype(np.float64), max(-2000, min(2000, exponent - self.state.unit)))
        need(np.abs(amounts).max(initial=0) <= 2 * LARGEST, "the messages are too large")
        return places, np.rint(amounts)

    def messages(self) -> None:
        assert self.tree is not None
        places, amounts = self.read_messages()
        counts = self.tree.open[self.tree.sender[self.tree.link[places]]]  # the others have given what they had
        self.tree.send(places[counts], amounts[counts])

    def remove(self) -> None:
        assert self.tree is not None
        self.tree.remove(self.stream.packed_ints(self.tree.n_labels, "u"))

    def branch(self) -> None:
        assert self.tree is not None
        self.tree.branch(*struct.unpack("<i", self.stream.take(4)))

    def end(self) -> None:
        assert self.tree is not None
        if self.tree.end():
            self.tree.finish()
            self.tree = None

    def leave(self) -> None:
        assert self.tree is not None
        self.tree.leave()
        self.tree = None

    def conclude(self) -> Verdict:
        """What is left says what was proven; the proof says what it claims, which must be that."""
        need(self.tree is None, "the proof ends in the middle of a tree")
        claim, said = self.stream.take(1), self.stream.double()
        kind = {b"O": "optimal", b"I": "infeasible", b"U": "bound"}.get(claim)
        need(kind and (claim == b"U" or said < math.inf), "the proof does not say what it proves")
        state, unit = self.state, power(self.state.unit)
        bound = state.bound()
        if bound is not None:
            bound = state.origin + (bound - state.origin) // state.first_step * state.first_step
        if state.floor is not None:
            bound = state.floor if bound is None else max(bound, state.floor)
        value = None if bound is None else bound * unit
        sound = self.solution is None or (value is not None and value + unit >= self.solution)
        need(sound, "the steps contradict the solution, whose score is above their bound")
        budget = state.budget * unit
        cutoff = self.file.cutoff
        verdict = Verdict("bound", value, self.solution, budget, self.steps)
        if value is None or (cutoff > -math.inf and value <= Fraction(cutoff)):
            verdict.kind = "infeasible"
        elif self.solution is not None and value - self.solution <= budget:
            verdict.kind = "optimal"
        need(kind in (verdict.kind, "bound"), f"the proof claims {kind}, and shows {verdict}")
        same = claim != b"O" or abs(Fraction(said) - (self.solution or 0)) <= budget + Fraction(abs(said)) * power(-40)
        need(same, f"the proof claims the score {said!r}, its solution has {near(self.solution)!r}")
        shown = claim != b"U" or value is None or said == math.inf or value <= Fraction(said)
        need(shown, f"the proof claims the bound {said!r}, and shows {verdict}")
        return verdict


def verify(model: str, proof: str) -> Verdict:
    """Raises NotVerified, with the step and why."""
    check = Check.__new__(Check)
    try:
        with open(proof, "rb") as file:
            check.__init__(model, Stream(file))  # type: ignore[misc]
            return check.run()
    except NotVerified as error:
        why: object = error
    except Exception as error:  # whatever a file that is damaged makes numpy or zipfile say
        why = "a file cannot be used (" + " ".join(f"{type(error).__name__} {error}".split())[:300] + ")"
    raise NotVerified(f"not verified: step {getattr(check, 'steps', 0)}: {why}")


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: checker.py MODEL PROOF", file=sys.stderr)
        return 3
    try:
        print(verify(*arguments))
    except NotVerified as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
