"""toulbar2's .cfn: a cost function network in (relaxed) JSON, with names, decimal costs, and a bound on the total.

`mustbe: "<b"` minimises, and totals at or above b are infeasible; `">b"` maximises, and totals at or below b are. A
score is minus a cost, or the value itself when maximising; the bound becomes the graph's cutoff. A single cost forbids
only where it is so high that the negative costs of all other functions cannot pay for it. As in toulbar2, quotes,
commas and colons are optional and brackets are interchangeable. Tables are dense, or a default cost and the tuples that
differ, or the name of a function to share.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import MOST_VARIABLES, Assembly, Factors, Function
from fginfer.formats.cfn_tokens import NUMBER, Scanner
from fginfer.formats.costs import ARITHMETIC, NEGATIVE, arithmetic
from fginfer.formats.streams import split_compression, write_atomically
from fginfer.graph import FactorGraph

# -- reading ---------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, path: Path, budget: Budget) -> None:
        self.scan = Scanner(path, budget)
        self.budget = budget
        budget.fail = self.scan.fail
        self.names: dict[str, int] = {}
        self.labels: list[dict[str, int] | None] = []
        self.cards: list[int] = []
        # functions by name, and all factors: their variables, the function they use, and the line that names it
        self.tables: dict[str, NDArray[np.float64]] = {}  # costs, to be minimised
        self.factors: list[tuple[list[int], str, int]] = []
        self.twice: set[str] = set()  # names of several functions
        self.sharing: set[int] = set()  # factors with the table of another

    def read(self) -> FactorGraph:
        scan = self.scan
        if scan.ahead is None:
            scan.fail("the file is empty")
        scan.opening("a cost function network")
        scan.keyword("problem")
        self.problem()
        scan.keyword("variables")
        self.variables()
        self.budget.take_unlisted(8.0 * sum(self.cards), f"{sum(self.cards)} labels in all")
        self.assembly = Assembly(np.array(self.cards, np.int32))
        scan.keyword("functions")
        scan.opening("the functions")
        n = 0
        while not scan.closed():
            self.function(n)
            n += 1
        if not scan.closed() or scan.ahead is not None:
            scan.fail("extra text after the functions")
        for f, (variables, name, line) in enumerate(self.factors):
            scan.token = name
            if name not in self.tables:
                scan.fail(f"function {f} shares the costs of a function that is not there", line)
            if f in self.sharing and name in self.twice:
                scan.fail(f"function {f} shares the costs of one of several functions of that name", line)
            shape = self.tables[name].shape
            if shape != tuple(self.cards[v] for v in variables):
                scan.fail(f"function {f} shares a table of another shape, {shape}", line)
        return self.graph()

    def graph(self) -> FactorGraph:
        """All factors, once all costs are known: only then can be said which of them forbid."""
        least = {name: _finite(costs, np.min) for name, costs in self.tables.items()}
        largest: dict[str, float] = {}
        paid = sum(min(0.0, least[name]) for _, name, _ in self.factors)
        stored: dict[str, Function] = {}
        most = 0.0
        for variables, name, _ in self.factors:
            if name not in stored:
                scores = np.array(0.0 - self.tables[name])
                scores[self.tables[name] >= self.bound - (paid - min(0.0, least[name]))] = -np.inf
                stored[name] = self.assembly.function(scores)
                largest[name] = _finite(0.0 - scores, np.max)
            self.assembly.add(variables, stored[name])
            most += largest[name]
        graph = self.assembly.graph()
        if most >= self.bound - 1e-9 * abs(self.bound):  # else no total gets there
            graph.cutoff = 0.0 - self.below_bound(max(map(abs, (most, paid, *least.values(), *largest.values()))))
        return graph

    def below_bound(self, most: float) -> float:
        """The bound, or, where sums of decimals that are equal to it may be rounded to less, half a digit below it."""
        step = _last_digit([*self.tables.values(), np.array([self.bound])])
        return self.bound - 0.5 * step if 1e-15 * most * len(self.factors) < 0.25 * step else self.bound

    def problem(self) -> None:
        scan = self.scan
        scan.opening("the properties of the problem")
        scan.keyword("name")
        bound = ""
        if scan.ahead is not None and scan.ahead[:1] not in "<>":
            scan.word("the name of the problem")
        scan.keyword("mustbe")
        self.maximise = (scan.ahead or "")[:1] == ">"
        self.forbids = -math.inf if self.maximise else math.inf
        bound = (scan.ahead or "")[1:]
        if (scan.ahead or "")[:1] not in ("<", ">") or not NUMBER.match(bound):
            scan.fail("expected 'mustbe' as '<' or '>' and a number")
        self.bound = 0.0 - float(bound) if self.maximise else float(bound)  # of costs, which are minus the values
        scan.advance()
        if not scan.closed():
            scan.fail("extra properties of the problem")

    def variables(self) -> None:
        scan = self.scan
        scan.opening("the variables")
        while not scan.closed():
            i = len(self.cards)
            if scan.ahead != "[" and not (scan.ahead is not None and NUMBER.match(scan.ahead) and not scan.quoted):
                name = scan.word(f"the name of variable {i}")
                if name in self.names:
                    scan.fail(f"there are two variables {name!r}")
                self.names[name] = i
            if scan.ahead == "[":
                scan.advance()
                labels: dict[str, int] = {}
                while not scan.closed():
                    labels.setdefault(scan.word(f"a label of variable {i}"), len(labels))
                self.labels.append(labels)
                self.cards.append(len(labels))
            else:
                if NUMBER.match(scan.ahead or "") and (scan.ahead or "").startswith("-"):
                    scan.fail(NEGATIVE.format(i))
                size = scan.number(f"the number of labels of variable {i}")
                self.labels.append(None)
                self.cards.append(int(size) if size < 2**31 and size == int(size) else 0)
            if self.cards[-1] < 1:
                scan.fail(f"variable {i} needs between 1 and 2^31-1 labels")

    def variable(self, f: int) -> int:
        word = self.scan.ahead or ""
        index = self.names.get(word)
        if index is None and word.isascii() and word.isdigit() and len(word) < 10:
            index = int(word)
        if index is None or index >= len(self.cards):
            self.scan.fail(f"function {f}: there is no such variable")
        self.scan.advance()
        return index

    def label(self, f: int, variable: int) -> int:
        word, labels = self.scan.ahead or "", self.labels[variable]
        index = labels.get(word) if labels is not None else None
        if index is None and word.isascii() and word.isdigit() and len(word) < 10:
            index = int(word)
        if index is None or index >= self.cards[variable]:
            self.scan.fail(f"function {f}: variable {variable} has no such label")
        self.scan.advance()
        return index

    def function(self, f: int) -> None:
        scan = self.scan
        name = str(f) if scan.ahead == "[" and not scan.quoted else scan.word(f"the name of function {f}")
        scan.opening(f"function {f}")
        scan.keyword("scope")
        scan.opening(f"the scope of function {f}")
        variables: list[int] = []
        while not scan.closed():
            variables.append(self.variable(f))
        if len(set(variables)) < len(variables):
            scan.fail(f"function {f} names a variable twice")
        if len(variables) > MOST_VARIABLES:
            scan.fail(f"function {f} has {len(variables)} variables; {MOST_VARIABLES} are the most")
        shape = tuple(self.cards[v] for v in variables)
        size = math.prod(shape)
        listed = scan.ahead == "costs"  # then its entries come one by one, and are counted when they are there
        if listed:
            self.budget.hold(8.0 * size, f"function {f}, a table of {size} entries,")
        else:
            self.budget.take_unlisted(8.0 * size, f"function {f}, a table of {size} entries,")
        default: float | None = None
        if scan.keyword("type"):
            self.keep(name, variables, self.by_formula(f, shape))
            return
        if scan.keyword("defaultcost"):
            default = scan.cost(f"the default cost of function {f}", self.forbids)
        if not scan.keyword("costs"):
            if default is None or not scan.closed():
                scan.fail(f"expected the costs of function {f}")
            self.keep(name, variables, np.full(shape, default))
            return
        if scan.ahead != "[" or scan.quoted:
            line = scan.line
            self.sharing.add(len(self.factors))
            self.factors.append((variables, scan.word(f"the costs of function {f}"), line))
            if not scan.closed():
                scan.fail(f"extra text in function {f}")
            return
        scan.advance()
        costs = self.dense(f, shape) if default is None else self.sparse(f, variables, shape, default)
        if not scan.closed():
            scan.fail(f"extra text in function {f}")
        self.keep(name, variables, costs)

    def dense(self, f: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
        size = math.prod(shape)
        out = array("d")
        while numbers := self.scan.plain_numbers(size - len(out)):
            out.extend(numbers)
        while not self.scan.closed():
            if len(out) == size:
                self.scan.fail(f"function {f} has more than {size} costs")
            out.append(self.scan.cost(f"a cost of function {f}", self.forbids))
        if len(out) < size:
            self.scan.fail(f"function {f} has {len(out)} of {size} costs")
        return np.frombuffer(out).reshape(shape) if size else np.zeros(shape)

    def sparse(self, f: int, variables: list[int], shape: tuple[int, ...], default: float) -> NDArray[np.float64]:
        out = np.full(shape, default)
        while not self.scan.closed():
            at = tuple(self.label(f, v) for v in variables)
            out[at] = self.scan.cost(f"a cost of function {f}", self.forbids)
        return out

    def by_formula(self, f: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
        scan = self.scan
        if scan.ahead not in ARITHMETIC or len(shape) != 2 or self.maximise:
            scan.fail(f"function {f} is a global one of a kind that is not supported")
        kind = scan.word("a type")
        scan.keyword("params", "parameters")
        scan.opening(f"the parameters of function {f}")
        parameters = [scan.number(f"a parameter of function {f}") for _ in range(ARITHMETIC[kind])]
        if not scan.closed() or not scan.closed():
            scan.fail(f"extra parameters of function {f}")
        return arithmetic(kind, parameters, (shape[0], shape[1]), math.inf)

    def keep(self, name: str, variables: list[int], costs: NDArray[np.float64]) -> None:
        if name in self.tables:  # which toulbar2 allows; no name in a file has a line break
            self.twice.add(name)
            name = f"{name}\n{len(self.factors)}"
        self.tables[name] = 0.0 - costs if self.maximise else costs
        self.factors.append((variables, name, self.scan.line))


def _finite(costs: NDArray[np.float64], best: Callable[[NDArray[np.float64]], Any]) -> float:
    """The least or largest finite cost; 0 if there is none."""
    finite = costs[np.isfinite(costs)]
    return float(best(finite)) if finite.size else 0.0


def _last_digit(several: list[NDArray[np.float64]]) -> float:
    """Of decimal costs, to nine places; 0 where their sums are exact, or where they have more places."""
    for scale in (2.0**20, *(10.0**places for places in range(1, 10))):
        if all((np.rint(c * scale) / scale == c)[np.isfinite(c)].all() for c in several):
            return 0.0 if scale == 2.0**20 else 1.0 / scale
    return 0.0


def read_cfn(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a .cfn file."""
    try:
        return _Reader(path, Budget(path) if budget is None else budget).read()
    except ModelError as error:
        raise FormatError(str(error), str(path)) from None


# -- writing ---------------------------------------------------------------------------------------------------


def write_cfn(graph: FactorGraph, path: Path) -> None:
    """Writes a .cfn file that minimises; decimals are exact, tables that factors share are written once."""
    factors = Factors(graph)
    entries: list[tuple[tuple[int, ...], NDArray[np.float64] | tuple[int, float, tuple[int, ...]]]] = []
    top = decimals = paid = 0
    if factors.constant is not None:
        entries.append(((), np.array(factors.constant)))
    entries += [((variable,), scores) for variable, scores in factors.unaries()]
    uses = Counter(key for _, key in factors)
    for scores, n in [(s, 1) for _, s in entries] + [(factors.scores(key), n) for key, n in uses.items()]:
        assert isinstance(scores, np.ndarray)
        finite = -scores[np.isfinite(scores)]
        if finite.size:
            top += n * max(0, math.ceil(finite.max()))
            paid += n * max(0, math.ceil(-finite.min()))
            decimals = max(decimals, max(_decimals(c) for c in set(finite.reshape(-1)[:4096].tolist())))
    # toulbar2 works with as many decimals as the bound shows, in 64-bit integers; we read the costs as they are.
    top += 1
    decimals = max(0, min(decimals, 17 - len(str(top))))
    zeros = f".{'0' * decimals}" if decimals else ""
    bound = str(top) + zeros
    if 0.0 - graph.cutoff < top:
        bound = _text(0.0 - graph.cutoff)
        missing = decimals - len(bound.partition(".")[2])
        bound += ("" if "." in bound or missing <= 0 else ".") + "0" * missing
        top = max(0, math.ceil(0.0 - graph.cutoff))
    forbidden = str(top + paid) + zeros  # the negative costs of all other functions do not pay for it
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", split_compression(path)[0].stem)
    # toulbar2 shares tables of up to three variables and wants the function that others name to come last; of more
    # variables it reads a default cost and tuples only.
    last = {key: f"f{len(entries) + k}" for k, (_, key) in enumerate(factors)}
    with write_atomically(path) as stream:
        stream.write(f'{{\n"problem": {{"name": "m_{name}", "mustbe": "<{bound}"}},\n"variables": {{'.encode())
        stream.write(",".join(f'\n"x{i}": {card}' for i, card in enumerate(graph.cards.tolist())).encode())
        stream.write(b'\n},\n"functions": {')
        n = 0
        for scope, scores in entries:
            assert isinstance(scores, np.ndarray)
            stream.write(_function(n, scope, _costs(scores, forbidden)))
            n += 1
        for scope, key in factors:
            if len(scope) < 4 and f"f{n}" != last[key]:
                costs = f'"costs": "{last[key]}"'
            else:
                costs = (_costs if len(scope) < 4 else _tuples)(factors.scores(key), forbidden)
            stream.write(_function(n, scope, costs))
            n += 1
        stream.write(b"\n}\n}\n")


def _function(n: int, scope: tuple[int, ...], costs: str) -> bytes:
    comma = "," if n else ""
    return f'{comma}\n"f{n}": {{"scope": [{", ".join(map(str, scope))}], {costs}}}'.encode()


def _text(cost: float) -> str:
    return np.format_float_positional(cost, unique=True, trim="-")


def _decimals(cost: float) -> int:
    return len(_text(cost).partition(".")[2])


def _costs(scores: NDArray[np.float64], forbidden: str) -> str:
    """All costs, exactly."""
    return f'"costs": [{", ".join(_texts(scores, forbidden))}]'


def _tuples(scores: NDArray[np.float64], forbidden: str) -> str:
    """The most frequent cost, and the labels that have another one."""
    costs = _texts(scores, forbidden)
    default = Counter(costs).most_common(1)[0][0]
    labels = np.stack(np.unravel_index(np.arange(scores.size), scores.shape), axis=1).tolist()
    rows = [", ".join([*map(str, x), c]) for x, c in zip(labels, costs, strict=True) if c != default]
    return f'"defaultcost": {default}, "costs": [{", ".join(rows)}]'


def _texts(scores: NDArray[np.float64], forbidden: str) -> list[str]:
    """The shortest decimals that read back as the same doubles."""
    known: dict[float, str] = {math.inf: forbidden}
    out = []
    for cost in (0.0 - scores).reshape(-1).tolist():
        text = known.get(cost)
        if text is None:
            text = known[cost] = _text(cost)
        out.append(text)
    return out
