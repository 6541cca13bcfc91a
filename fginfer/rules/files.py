"""Rules as text, for files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fginfer.errors import ModelError
from fginfer.rules.occurrences import Occurrences
from fginfer.rules.regular import Regular
from fginfer.rules.rule import Rule
from fginfer.rules.sparse import Sparse
from fginfer.rules.sums import SumRule

_TYPES: dict[str, Any] = {"sum": SumRule, "occurrences": Occurrences, "regular": Regular, "sparse": Sparse}


def rules_to_json(rules: Sequence[Rule]) -> str:
    """Text that `rules_from_json` reads."""
    return json.dumps([rule.saved() for rule in rules], separators=(",", ":"))


def rules_from_json(text: str | bytes, cards: Sequence[int]) -> list[Rule]:
    """The rules, whose variables must have these label counts; ModelError for what is not such a text."""
    try:
        rules: list[Rule] = []
        for saved in json.loads(text):
            rule: Rule = _TYPES[saved["type"]].load(saved)
            rule.check(cards)
            rules.append(rule)
        return rules
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        reason = error if isinstance(error, ModelError) else f"damaged ({type(error).__name__})"
        raise ModelError(f"the constraints are no good: {reason}") from None
