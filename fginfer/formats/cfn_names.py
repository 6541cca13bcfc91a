"""Names as a .cfn file has them: in quotes where they are text, numbers where there are none."""

from __future__ import annotations

from pathlib import Path

from fginfer.errors import FormatError
from fginfer.formats.costs import label_texts
from fginfer.names import Names, shown


class CfnNames:
    """How a written file calls variables and labels.

    A number in a scope or tuple stands for a name if there is such a name, so a graph with names has them used
    everywhere; the variables that have none are called x0, x1, ... as in a graph without names.
    """

    def __init__(self, names: Names | None, cards: list[int], path: Path) -> None:
        self._names, self._cards, self._path = names, cards, path
        self._variables = [] if names is None else [self._quoted(name) for name in names.all_variables(len(cards))]

    def _quoted(self, name: str) -> str:
        """A text in quotes cannot hold quotes, nor a line end, and nothing stands for them."""
        if '"' in name or "\n" in name:
            raise FormatError(
                f"the name {shown(name)} cannot be written: .cfn has no quotes or lines in names", str(self._path)
            )
        return f'"{name}"'

    def declared(self) -> str:
        """The variables with their labels."""
        if self._names is None:
            return ",".join(f'\n"x{i}": {card}' for i, card in enumerate(self._cards))
        return ",".join(f"\n{name}: {self._domain(i)}" for i, name in enumerate(self._variables))

    def _domain(self, variable: int) -> str:
        labels = None if self._names is None else self._names.labels(variable)
        return str(self._cards[variable]) if labels is None else f"[{', '.join(map(self._quoted, labels))}]"

    def scope(self, scope: tuple[int, ...]) -> str:
        """The variables of a function."""
        return ", ".join(map(str, scope) if self._names is None else (self._variables[i] for i in scope))

    def states(self, scope: tuple[int, ...]) -> list[str]:
        """The labels of every state of a function, the last variable's fastest."""
        if self._names is None or all(self._names.labels(i) is None for i in scope):
            return label_texts(tuple(self._cards[i] for i in scope), ", ")
        texts = [""]
        for k, i in enumerate(scope):
            given = self._names.labels(i)
            some = map(str, range(self._cards[i])) if given is None else map(self._quoted, given)
            labels = [(", " if k else "") + text for text in some]
            texts = [before + label for before in texts for label in labels]
        return texts
