"""Global cost functions of .wcsp and .cfn files: found in the text, which is read without them.

The readers of the core know tables. A file that they refuse is looked through here: global functions are taken out,
what is left keeps its lines, and the functions become constraints of the graph (`global_rules.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from fginfer.errors import FormatError

Params = dict[str, "str | list[object]"]  # words, or lists of words and of lists
# Formulas of the core, and their parameters
_FORMULAS = {">=": 2, ">": 2, "<=": 2, "<": 2, "=": 2, "disj": 3, "sdisj": 6}
# What follows the name in a .wcsp file: w a word, n a list that begins with its length, a an entry for each variable;
# a number after n says how many words an entry has. A number alone: sizes of lists, then the list of that size.
_LAYOUTS: dict[str, str] = {
    **dict.fromkeys(("salldiff", "salldiffdp", "walldiff"), "metric:w cost:w"),
    **dict.fromkeys(("sgcc", "sgccdp", "wgcc"), "metric:w cost:w bounds:n3"),
    **dict.fromkeys(("samong", "samongdp"), "metric:w cost:w min:w max:w values:n1"),
    "wamong": "metric:w cost:w values:n1 min:w max:w",
    **dict.fromkeys(("sregular", "sregulardp"), "metric:w cost:w nb_states:w starts:n1 ends:n1 transitions:n3"),
    "wregular": "nb_states:w starts:n2 ends:n2 transitions:n4",
    **dict.fromkeys(("wsum", "woverlap"), "metric:w cost:w comparator:w to:w"),
    "wvarsum": "metric:w cost:w comparator:w",
    "wvaramong": "metric:w cost:w values:n1",
    "wsame": "metric:w cost:w",
    "wsamegcc": "metric:w cost:w bounds:n3",
    **dict.fromkeys(("smst", "smstdp", "MST"), ""),
    "ssame": "cost:w sizes:2 vars1:0 vars2:1",
    **dict.fromkeys(("max", "smaxdp"), "defaultcost:w tuples:n3"),
    **dict.fromkeys(("wdiverse", "whdiverse", "wtdiverse"), "distance:w values:a"),
    "knapsack": "capacity:w weights:a",
    "knapsackp": "capacity:w weightedvalues:an2",
    "knapsackv": "capacity:w weightedvalues:n3",
    "clique": "rhs:w values:an1",
}
_OF_CFN = ("sgrammar", "sgrammardp", "cfnconstraint")  # read from .cfn files alone
KINDS = (*_LAYOUTS, *_OF_CFN)


class Global(NamedTuple):
    """A global cost function as a file has it."""

    kind: str
    scope: list[str]
    params: Params
    line: int
    inside: str = ""  # the text of a network that is a parameter


class UnknownGlobalError(FormatError):
    """A global function of a kind that is not read."""


class Split(NamedTuple):
    """The text without global functions, these, and the bound on the total (its decimals: of every number)."""

    text: str
    found: list[Global]
    bound: str


def _fail(path: Path, text: str, at: int, message: str, word: str, error: type[FormatError] = FormatError) -> NoReturn:
    shown = "".join(c if c.isprintable() else "?" for c in word[:60])
    raise error(message, str(path), text.count("\n", 0, at) + 1, shown)


def _unknown(path: Path, text: str, at: int, kind: str) -> NoReturn:
    message = f"the global cost function {kind[:40]!r} is not read; read are {', '.join(KINDS)}"
    _fail(path, text, at, message, kind, UnknownGlobalError)


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with blanks in place of some parts; lines stay lines."""
    out, end = [], 0
    for begin, stop in spans:
        out += [text[end:begin], re.sub(r"[^\n]", " ", text[begin:stop])]
        end = stop
    return "".join([*out, text[end:]])


# -- .wcsp -----------------------------------------------------------------------------------------------------


class _Words:
    """Words one by one."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self._found = re.finditer(r"\S+", text)
        self.begin = self.end = 0

    def next(self) -> str:
        found = next(self._found, None)
        if found is None:
            _fail(self.path, self.text, len(self.text), "the file ends inside a function", "end of file")
        self.begin, self.end = found.span()
        return found[0]

    def integer(self, low: int = 0, high: int = 10**9) -> int:
        word = self.next()
        if not re.fullmatch(r"[+-]?\d{1,12}", word, re.ASCII) or not low <= int(word) <= high:
            _fail(self.path, self.text, self.begin, f"expected a whole number from {low} to {high}", word)
        return int(word)


def split_wcsp(path: Path, text: str) -> Split:
    """Takes the global functions out of a .wcsp file."""
    words = _Words(path, text)
    words.next()
    n = words.integer()
    words.next()
    functions = words.integer()
    count = words.begin, words.end
    bound = words.next()
    for _ in range(n):
        words.next()
    found: list[Global] = []
    spans: list[tuple[int, int]] = []
    for _ in range(functions):
        arity = abs(words.integer(-(10**6), 10**6))
        begin = words.begin
        scope = [words.next() for _ in range(arity)]
        if words.next() != "-1":
            for _ in range(max(0, words.integer(-(10**9))) * (arity + 1)):
                words.next()
            continue
        kind, line = words.next(), text.count("\n", 0, words.begin) + 1
        if kind in _FORMULAS:
            for _ in range(_FORMULAS[kind]):
                words.next()
            continue
        if kind not in _LAYOUTS:
            _unknown(path, text, words.begin, kind)
        found.append(Global(kind, scope, _positional(words, kind, arity), line))
        spans.append((begin, words.end))
    left = str(functions - len(found)).ljust(count[1] - count[0])
    return Split(_blank(text[: count[0]] + left + text[count[1] :], spans), found, bound)


def _positional(words: _Words, kind: str, arity: int) -> Params:
    params: Params = {}
    sizes: list[int] = []
    for part in _LAYOUTS[kind].split():
        key, _, spec = part.partition(":")
        width = 5 if key == "bounds" and params.get("metric") == "wdec" else int(spec[-1]) if spec[-1].isdigit() else 1
        if spec == "w":
            params[key] = words.next()
        elif key == "sizes":
            sizes = [words.integer() for _ in range(int(spec))]
        elif spec.isdigit():
            params[key] = [words.next() for _ in range(sizes[int(spec)])]
        elif spec == "a":
            params[key] = [words.next() for _ in range(arity)]
        elif spec[0] == "a":
            params[key] = [_listed(words, width) for _ in range(arity)]
        else:
            params[key] = _listed(words, width)
    return params


def _listed(words: _Words, width: int) -> list[object]:
    entries = words.integer()
    if width == 1:
        return [words.next() for _ in range(entries)]
    return [[words.next() for _ in range(width)] for _ in range(entries)]


# -- .cfn ------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r'#[^\n]*|//[^\n]*|"[^"]*"|[{}\[\]]|[^\s{}\[\],:"#]+')


class _Node(NamedTuple):
    """What stands between two brackets: words with their places, and nodes."""

    items: list[object]
    begin: int
    end: int


class _Word(str):
    """A word with the place where it stands."""

    at: int


def _tree(path: Path, text: str) -> _Node:
    open_nodes: list[tuple[list[object], int]] = [([], 0)]
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "{[":
            open_nodes.append(([], found.start()))
            if len(open_nodes) > 100:
                _fail(path, text, found.start(), "brackets in more than 100 brackets", token)
        elif token in "}]":
            if len(open_nodes) < 2:
                _fail(path, text, found.start(), "a bracket closes what was never opened", token)
            items, begin = open_nodes.pop()
            open_nodes[-1][0].append(_Node(items, begin, found.end()))
        elif not token.startswith(("#", "//")):
            word = _Word(token.strip('"'))
            word.at = found.start()
            open_nodes[-1][0].append(word)
    if len(open_nodes) > 1:
        _fail(path, text, len(text), "the file ends inside a bracket", "end of file")
    return _Node(open_nodes[0][0], 0, len(text))


def _nodes(node: _Node) -> list[_Node]:
    return [item for item in node.items if isinstance(item, _Node)]


def _functions(node: _Node) -> Iterator[tuple[int, _Node]]:
    """Where a function begins, with its name, and what it says."""
    begin: int | None = None
    for item in node.items:
        if isinstance(item, _Word):
            begin = item.at
        elif isinstance(item, _Node):
            yield item.begin if begin is None else begin, item
            begin = None


def _plain(item: object) -> str | list[object]:
    return [_plain(one) for one in item.items] if isinstance(item, _Node) else str(item)


def split_cfn(path: Path, text: str) -> Split:
    """Takes the global functions out of a .cfn file."""
    whole = _nodes(_tree(path, text))
    parts = _nodes(whole[0]) if whole else []
    if len(parts) < 3:
        return Split(text, [], "")
    found: list[Global] = []
    spans: list[tuple[int, int]] = []
    for begin, node in _functions(parts[2]):
        kind = _after(node, "type")
        if not isinstance(kind, _Word) or kind in _FORMULAS:
            continue
        if kind not in KINDS:
            _unknown(path, text, kind.at, kind)
        scope, params = next(iter(_nodes(node)), None), _after(node, "params")
        if scope is None or not isinstance(params, _Node) or scope is params:
            _fail(path, text, kind.at, f"the global function {kind} needs a scope and params", kind)
        keys = params.items[0::2]
        if len(params.items) % 2 or not all(isinstance(key, _Word) for key in keys):
            _fail(path, text, kind.at, f"the params of {kind} must be pairs of a name and a value", kind)
        named = {str(key): _plain(value) for key, value in zip(keys, params.items[1::2], strict=True)}
        inner = _after(params, "cfn")
        inside = _alone(text, inner) if kind == "cfnconstraint" and isinstance(inner, _Node) else ""
        line = text.count("\n", 0, kind.at) + 1
        found.append(Global(str(kind), [str(w) for w in scope.items], named, line, inside))
        spans.append((begin, node.end))
    bound = next((str(w) for w in parts[0].items if isinstance(w, _Word) and w[:1] in "<>" and len(w) > 1), "")
    return Split(_blank(text, spans), found, bound)


def _alone(text: str, node: _Node) -> str:
    """The text of a node on the lines where it stands."""
    return "\n" * text.count("\n", 0, node.begin) + text[node.begin : node.end]


def _after(node: _Node, word: str) -> object:
    for k, item in enumerate(node.items[:-1]):
        if isinstance(item, _Word) and item == word:
            return node.items[k + 1]
    return None
