"""A fair comparison of methods and of other solvers on the same files: one at a time, re-scored by one evaluator."""

from fginfer.compare.runs import Comparison, Run, compare, expand_methods

__all__ = ["Comparison", "Run", "compare", "expand_methods"]
