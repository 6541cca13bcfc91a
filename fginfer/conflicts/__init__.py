"""Conflicts: graphs with constraints as clauses and linear constraints, solved by a search that learns from conflicts.

Constraints stay what was said: a sum is a linear constraint, whatever its totals, and not a chain of tables. `program`
is the language, `encode` says graphs in it, `learner` looks for better labelings until there are none.
"""

from fginfer.conflicts.learner import Learner, learner_of

__all__ = ["Learner", "learner_of"]
