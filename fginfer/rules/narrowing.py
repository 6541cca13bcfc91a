"""Labels that are ruled out before any method begins: those that no matching of variables and labels uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.rules.occurrences import Occurrences
from fginfer.rules.rule import Rule

MOST_VARIABLES = 2000  # variables of a rule that is looked at: the work is quadratic (chosen)


def _is_asked(rule: Rule) -> bool:
    """Hard rules about occurrences, and about one variable, which are labels that are given."""
    occurrences = isinstance(rule, Occurrences) and len(rule.variables) <= MOST_VARIABLES
    return (occurrences or len(rule.variables) == 1) and rule.forbids()


def allowed_labels(unary: NDArray[np.float64], begin: NDArray[np.int64], rules: Sequence[Rule]) -> NDArray[np.bool_]:
    """Which labels are left of those with a finite unary score, all variables one after the other."""
    allowed = unary > -inf
    several = [rule for rule in rules if _is_asked(rule)]
    at: dict[int, list[int]] = {}
    for k, rule in enumerate(several):
        for v in rule.variables:
            at.setdefault(v, []).append(k)
    waiting, queued = deque(range(len(several))), [True] * len(several)
    while waiting:
        k = waiting.popleft()
        queued[k] = False
        rule = several[k]
        masks = [allowed[begin[v] : begin[v + 1]] for v in rule.variables]
        for v, mask, kept in zip(rule.variables, masks, rule.propagate(masks), strict=True):
            if kept.sum() == mask.sum():
                continue
            mask[:] = kept
            for other in at[v]:
                if not queued[other] and other != k:
                    queued[other] = True
                    waiting.append(other)
    return allowed
