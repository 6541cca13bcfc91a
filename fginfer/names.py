"""Names of variables and of their labels. A graph without names holds none of this: its `names` is None."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.options import is_number

_FEW = 10_000  # names among which a misspelt one is looked for
_SHOWN = 60  # characters of a name in a message


def shown(name: str) -> str:
    """A name as messages quote it: short, on one line."""
    return repr(name if len(name) <= _SHOWN else name[: _SHOWN - 3] + "...")


def _check_name(what: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} must be a text that is not empty, not {name!r}")
    return name


class Names:
    """Names of some or all variables, and of the labels of some or all of them.

    Wherever a variable or a label is wanted, its number does as well as its name.

    >>> from fginfer import FactorGraph
    >>> names = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3}).names
    >>> names.variable(0), names.label(0, 1), names.label(1, 1)
    ('rain', 'yes', 1)
    """

    def __init__(self) -> None:
        self._name: dict[int, str] = {}
        self._index: dict[str, int] = {}
        self._labels: dict[int, tuple[str, ...]] = {}
        self._label_index: dict[int, dict[str, int]] = {}
        self.shared = False  # by a copy or a result, so that a graph must not change them in place

    # -- giving names ------------------------------------------------------------------------------------------

    def name_variable(self, variable: int, name: str) -> None:
        """Gives a variable its name, which no other one may have."""
        _check_name(f"the name of variable {variable}", name)
        if self._index.get(name, variable) != variable:
            raise ModelError(f"there are two variables {shown(name)}: {self._index[name]} and {variable}")
        old = self._name.get(variable)
        if old is not None:
            del self._index[old]
        self._name[variable], self._index[name] = name, variable

    def name_labels(self, variable: int, labels: Sequence[str], count: int) -> None:
        """Gives all labels of a variable their names."""
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise ModelError(f"the labels of {self.variable_text(variable)} must be a list of names, not {labels!r}")
        index: dict[str, int] = {}
        for label in labels:
            _check_name(f"a label of {self.variable_text(variable)}", label)
            if label in index:
                raise ModelError(f"{self.variable_text(variable)} has two labels {shown(label)}")
            index[label] = len(index)
        if len(index) != count:
            raise ModelError(f"{self.variable_text(variable)} has {count} labels, and {len(index)} names for them")
        self._labels[variable], self._label_index[variable] = tuple(labels), index

    @classmethod
    def of(cls, variables: Mapping[int, str], labels: Mapping[int, Sequence[str]]) -> Names:
        """Names that a reader knows to be good: no two variables, and no two labels of a variable, share one."""
        out = cls()
        out._name = dict(variables)
        out._index = {name: i for i, name in out._name.items()}
        out._labels = {i: tuple(some) for i, some in labels.items()}
        out._label_index = {i: {name: k for k, name in enumerate(some)} for i, some in out._labels.items()}
        return out

    # -- from numbers to names ---------------------------------------------------------------------------------

    def variable(self, variable: int) -> str | int:
        """The name of a variable; its number if it has none."""
        return self._name.get(variable, variable)

    def all_variables(self, n: int) -> list[str]:
        """A name for each of n variables, as formats want them: x0, x1, ... for those that have none."""
        used, out = set(self._index), []
        for i in range(n):
            name = self._name.get(i)
            if name is None:
                name = f"x{i}"
                while name in used:
                    name += "_"
                used.add(name)
            out.append(name)
        return out

    def labels(self, variable: int) -> tuple[str, ...] | None:
        """The names of the labels of a variable; None if they have none."""
        return self._labels.get(variable)

    def label(self, variable: int, label: int) -> str | int:
        """The name of a label; its number if it has none."""
        names = self._labels.get(variable)
        return int(label) if names is None else names[label]

    def variable_text(self, variable: int) -> str:
        """How a message calls a variable: "variable 'rain'", or "variable 3"."""
        name = self._name.get(variable)
        return f"variable {variable}" if name is None else f"variable {shown(name)}"

    def label_text(self, variable: int, label: int) -> str:
        """How a message calls a label."""
        names = self._labels.get(variable)
        return str(label) if names is None else shown(names[label])

    def named(self, labels: Iterable[int]) -> dict[str | int, str | int]:
        """A labeling as a dict of names."""
        return {self.variable(i): self.label(i, a) for i, a in enumerate(labels)}

    # -- from names to numbers ---------------------------------------------------------------------------------

    def has_variable(self, name: str) -> bool:
        """Whether a variable has this name."""
        return name in self._index

    def find_variable(self, name: str) -> int:
        """The number of the variable of this name."""
        found = self._index.get(name)
        if found is None:
            raise ModelError(f"there is no variable {shown(name)}{_meant(name, self._index)}")
        return found

    def find_label(self, variable: int, name: str) -> int:
        """The number of the label of this name."""
        index = self._label_index.get(variable)
        if index is None:
            raise ModelError(f"the labels of {self.variable_text(variable)} have no names, so none is {shown(name)}")
        if name not in index:
            raise ModelError(f"{self.variable_text(variable)} has no label {shown(name)}{_meant(name, index)}")
        return index[name]

    # -- as a whole --------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self._name or self._labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Names):
            return NotImplemented
        return self._name == other._name and self._labels == other._labels

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Names of {len(self._name)} variables, and of the labels of {len(self._labels)}>"

    def restricted(self, variables: Iterable[int]) -> Names:
        """The names of some variables, which are numbered anew."""
        out = Names()
        for new, old in enumerate(variables):
            if old in self._name:
                out._name[new], out._index[self._name[old]] = self._name[old], new
            if old in self._labels:
                out._labels[new], out._label_index[new] = self._labels[old], self._label_index[old]
        return out

    def copy(self) -> Names:
        """Independent names."""
        out = Names()
        out._name, out._index = dict(self._name), dict(self._index)
        out._labels, out._label_index = dict(self._labels), dict(self._label_index)
        return out

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        every = {"variables": list(self._name.items()), "labels": list(self._labels.items())}
        return json.dumps(every, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, cards: Sequence[int] | None, n: int) -> Names:
        """Names for n variables, with so many labels if that is known; ModelError for what is not such a text."""
        try:
            every = json.loads(text)
            variables, labels = every["variables"], every["labels"]
            out = cls()
            for variable, name in _numbered(variables, n):
                out.name_variable(variable, name)
            for variable, names in _numbered(labels, n):
                out.name_labels(variable, names, len(names) if cards is None else int(cards[variable]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            reason = error if isinstance(error, ModelError) else f"damaged ({type(error).__name__})"
            raise ModelError(f"the names are no good: {reason}") from None
        return out


def _numbered(pairs: Any, n: int) -> Iterator[tuple[int, Any]]:
    for variable, value in pairs:
        if type(variable) is not int or not 0 <= variable < n:
            raise ModelError(f"they are for variable {variable!r}; there are {n}")
        yield variable, value


def _meant(name: str, known: Mapping[str, int]) -> str:
    close = get_close_matches(name, known, 1) if len(known) <= _FEW else []
    if close:
        return f"; did you mean {shown(close[0])}?"
    few = list(known)[:8]
    listed = ", ".join(map(shown, few)) + (", ..." if len(known) > len(few) else "")
    return f"; there are {listed}" if known else ""


# -- values of labels ------------------------------------------------------------------------------------------------

ByLabel = dict[str | int, float]


class NamedArrays:
    """The part of an answer with an array for each variable, an entry a label, that knows names."""

    variables: list[NDArray[np.float64]]
    names: Names | None

    def _asked(self) -> Sequence[int]:
        """The variables that the arrays are for."""
        return range(len(self.variables))

    def __getitem__(self, variable: int | str) -> ByLabel:
        """What each label of a variable has, by its name (or number), for a variable given by name or number."""
        asked, at = self._asked(), number_of(self.names, variable)
        if not is_number(at, whole=True) or int(at) not in asked:
            raise ModelError(f"nothing is known of variable {variable!r}; {len(asked)} were asked for")
        return self._by_label(int(at), self.variables[asked.index(int(at))])

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("this is no list; its arrays are in `variables`, with names in `named()`")

    def named(self) -> dict[str | int, ByLabel]:
        """The same of all variables."""
        names = self.names or Names()
        some = zip(self._asked(), self.variables, strict=True)
        return {names.variable(variable): self._by_label(variable, values) for variable, values in some}

    def _by_label(self, variable: int, values: NDArray[np.float64]) -> ByLabel:
        names = self.names or Names()
        return {names.label(variable, label): value for label, value in enumerate(values.tolist())}


# -- what a graph asks of names it may not have ----------------------------------------------------------------------


def number_of(names: Names | None, variable: Any) -> Any:
    """The number of a variable given by number or name; what is neither stays as it is, for others to refuse."""
    if not isinstance(variable, str):
        return variable
    if names is None:
        raise ModelError(f"there is no variable {shown(variable)}: the variables of this graph have no names")
    return names.find_variable(variable)


def label_of(names: Names | None, variable: int, label: Any) -> Any:
    """The same for a label of a variable."""
    if not isinstance(label, str):
        return label
    return (Names() if names is None else names).find_label(variable, label)


def variable_text(names: Names | None, variable: int) -> str:
    """How a message calls a variable."""
    return f"variable {variable}" if names is None else names.variable_text(variable)


def variables_text(names: Names | None, variables: Iterable[int]) -> str:
    """The same for several: "variables ['rain', 3]"."""
    called = variables if names is None else map(names.variable, variables)
    return f"variables [{', '.join(shown(v) if isinstance(v, str) else str(v) for v in called)}]"


def numbers_of(names: Names | None, labels: Any, cards: NDArray[np.int32]) -> Any:
    """A labeling given as {variable: label}, by number or name, as a list of labels; others stay as they are."""
    if not isinstance(labels, Mapping):
        return labels
    out = np.full(len(cards), -1, np.int64)
    for variable, label in labels.items():
        at = number_of(names, variable)
        if not is_number(at, whole=True) or not 0 <= int(at) < len(cards):
            raise ModelError(f"there is no variable {variable!r}; there are {len(cards)}")
        found = label_of(names, int(at), label)
        if not is_number(found, whole=True):
            raise ModelError(f"a label is a number or a name, not {label!r}")
        if not 0 <= int(found) < int(cards[int(at)]):
            last = int(cards[int(at)]) - 1
            raise ModelError(f"label {int(found)} of {variable_text(names, int(at))} is out of range 0..{last}")
        out[int(at)] = int(found)
    if (out < 0).any():
        raise ModelError(f"the labeling has no label for {variable_text(names, int(np.argmax(out < 0)))}")
    return out


def cards_of(cards: Any, variables: Mapping[str, int | Sequence[str]] | None) -> tuple[Any, Names | None]:
    """Label counts, and names if variables are given by them, as in {"rain": ["no", "yes"], "floor": 3}."""
    if variables is None:
        if cards is None:
            raise ModelError("a FactorGraph takes cards, such as [2, 2, 3], or variables={name: labels}")
        return cards, None
    if cards is not None:
        raise ModelError("a FactorGraph takes cards or variables, not both")
    if not isinstance(variables, Mapping):
        raise ModelError(f"variables must be a dict of names and labels, not {type(variables).__name__}")
    names, counts = Names(), []
    given: Mapping[str, Any] = variables
    for i, (name, labels) in enumerate(given.items()):
        names.name_variable(i, name)
        if is_number(labels, whole=True):
            counts.append(int(labels))
        else:
            names.name_labels(i, labels, len(labels) if isinstance(labels, Sequence) else 0)
            counts.append(len(labels))
    return counts, names or None


class Named:
    """The part of a FactorGraph that knows names."""

    _names: Names | None
    _cards: NDArray[np.int32]

    @property
    def names(self) -> Names | None:
        """The names of variables and labels; None if there are none.

        >>> from fginfer import FactorGraph
        >>> FactorGraph(variables={"rain": ["no", "yes"]}).names.labels(0)
        ('no', 'yes')
        """
        return self._names

    def name(self, variable: int | str, name: str | None = None, labels: Sequence[str] | None = None) -> None:
        """Names a variable, or its labels, or both; what is left out stays as it is.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> graph.name(1, "rain", ["no", "yes"])
        >>> graph.variable("rain"), graph.label("rain", "yes")
        (1, 1)
        """
        at = self.variable(variable)
        names = Names() if self._names is None else self._names
        names = names.copy() if names.shared else names
        if labels is not None:
            Names().name_labels(at, labels, int(self._cards[at]))  # says what is wrong before anything changes
        if name is not None:
            names.name_variable(at, name)
        if labels is not None:
            names.name_labels(at, labels, int(self._cards[at]))
        self._names = names or None

    def _scope(self, variables: Sequence[int | str]) -> Any:
        """Variables with numbers for names; the builder checks the rest."""
        if self._names is None or not isinstance(variables, Iterable):
            return variables
        return [number_of(self._names, v) for v in variables]

    def shared_names(self) -> Names | None:
        """The names for somebody who keeps them: later names of this graph do not show there."""
        if self._names is not None:
            self._names.shared = True
        return self._names

    def take_names(self, names: Names | None) -> None:
        """All names at once, as readers and conditioning have them; without any, the graph has none."""
        self._names = names or None

    def variable(self, variable: int | str) -> int:
        """The number of a variable, from its number or its name.

        >>> from fginfer import FactorGraph
        >>> FactorGraph(variables={"rain": 2, "wet": 2}).variable("wet")
        1
        """
        found = number_of(self._names, variable)
        if not is_number(found, whole=True):
            raise ModelError(f"a variable is a number or a name, not {variable!r}")
        at = int(found)
        if not 0 <= at < len(self._cards):
            raise ModelError(f"there is no variable {at}; there are {len(self._cards)}")
        return at

    def label(self, variable: int | str, label: int | str) -> int:
        """The number of a label of a variable, from its number or its name.

        >>> from fginfer import FactorGraph
        >>> FactorGraph(variables={"rain": ["no", "yes"]}).label("rain", "yes")
        1
        """
        at = self.variable(variable)
        found = label_of(self._names, at, label)
        if not is_number(found, whole=True):
            raise ModelError(f"a label is a number or a name, not {label!r}")
        if not 0 <= int(found) < int(self._cards[at]):
            last = int(self._cards[at]) - 1
            raise ModelError(f"label {int(found)} of {variable_text(self._names, at)} is out of range 0..{last}")
        return int(found)
