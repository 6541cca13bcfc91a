"""Constraints as they were said: each rule is stored in the size of its statement and answers by an algorithm.

A rule has four functions: the score of a labeling, the best state under messages, the labels that it rules out, and the
change of score by a move. `chain` and `tables` are what `fginfer.lower` makes small tables from.
"""

from fginfer.rules.chain import Chain
from fginfer.rules.literals import Literal, check_literal, exact_number
from fginfer.rules.occurrences import Occurrences
from fginfer.rules.regular import Automaton, Regular
from fginfer.rules.rule import Rule
from fginfer.rules.sparse import Sparse
from fginfer.rules.steps import Steps
from fginfer.rules.sums import SumRule

__all__ = [
    "Automaton",
    "Chain",
    "Literal",
    "Occurrences",
    "Regular",
    "Rule",
    "Sparse",
    "Steps",
    "SumRule",
    "check_literal",
    "exact_number",
]
