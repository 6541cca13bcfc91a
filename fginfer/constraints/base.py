"""What all constraints of a graph share: literals and variables by name, and where a finished rule goes."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.constraints.checks import check_list, check_variable
from fginfer.errors import ModelError
from fginfer.handles import FactorLog, Handle, RuleFactor
from fginfer.names import Names, label_of, number_of, variable_text
from fginfer.rules import Literal, Rule, check_literal
from fginfer.rules.make import linear_rule

AnyLiteral = Sequence[Any]
Literals = Sequence[AnyLiteral]


class ConstraintBase:
    """The part of a FactorGraph that adders of constraints use."""

    _rules: list[Rule]
    _log: FactorLog
    _given: int
    _names: Names | None
    _cards: NDArray[np.int32]
    lock: RLock

    def _said(self, kind: str, name: str | None) -> str:
        """How errors call a new constraint."""
        return f"factor {self._given} ({kind})" if name is None else f"{name} ({kind})"

    def _keep(self, rule: Rule, name: str | None) -> Handle:
        self._log.check_name(name)
        self._rules.append(rule)
        self._given += 1
        return self._log.add(self._given, name, RuleFactor(len(self._rules) - 1, rule))

    def _add_linear(
        self,
        kind: str,
        literals: Literals,
        weights: Sequence[float] | None,
        low: Any,
        high: Any,
        penalty: float | None,
        per_unit: bool,
        when: AnyLiteral | None,
        name: str | None,
    ) -> Handle:
        with self.lock:
            said = self._said(kind, name)
            found = self._literals(said, literals)
            by = [1] * len(found) if weights is None else check_list(said, "weights", weights)
            on = None if when is None else self._literal(said, when)
            rule = linear_rule(said, kind, found, by, (low, high), penalty, per_unit, on, self._cards)
            return self._keep(rule, name)

    def _literal(self, said: str, given: Any) -> Literal:
        if self._names is not None and isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 1:
            variable = number_of(self._names, given[0])
            if hasattr(variable, "__index__") and 0 <= int(variable) < len(self._cards):
                given = (variable, label_of(self._names, int(variable), given[1]), *given[2:])
        return check_literal(said, given, self._cards, self._names)

    def _literals(self, said: str, given: Any) -> list[Literal]:
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise ModelError(f"{said}: literals must be a list of (variable, label), not {given!r}")
        return [self._literal(said, literal) for literal in given]

    def _several(self, said: str, variables: Sequence[int | str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Variables, each of which is named once, and their label counts."""
        if isinstance(variables, str) or not hasattr(variables, "__iter__"):
            raise ModelError(f"{said}: variables must be a list, not {variables!r}")
        scope = tuple(check_variable(said, number_of(self._names, v), len(self._cards)) for v in variables)
        if not scope:
            raise ModelError(f"{said}: it needs a variable or more")
        seen: set[int] = set()
        for v in scope:
            if v in seen:
                raise ModelError(f"{said} names {variable_text(self._names, v)} twice")
            seen.add(v)
        return scope, tuple(self._cards[list(scope)].tolist())
