"""fginfer: MAP inference in factor graphs. Scores are maximised; energy = -score; -inf forbids a state."""

import fginfer.startup  # before everything else: from here on, Ctrl-C in our command is quiet

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

import fginfer.portfolio.auto  # noqa: F401  (the default method: no solve has to wait for its import)
from fginfer.batches import BatchResult, solve_batch
from fginfer.condition import Conditioned
from fginfer.core.door import VERSION
from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError
from fginfer.explain import Explanation, explain
from fginfer.formats import read, read_evidence, read_solution, write, write_evidence, write_solution
from fginfer.graph import FactorGraph
from fginfer.handles import Handle
from fginfer.k_best import KBest, k_best
from fginfer.labelings import Factor
from fginfer.lower import Lowered
from fginfer.many import solve_many
from fginfer.marginals import Marginals, marginals
from fginfer.max_marginals import MaxMarginals, max_marginals
from fginfer.methods import available_methods
from fginfer.parts.shard import Shard
from fginfer.parts.sharded import Sharded
from fginfer.result import Progress, Result, TracePoint
from fginfer.rules.regular import Automaton
from fginfer.samples import Samples, sample
from fginfer.saved import load
from fginfer.solve import solve
from fginfer.solver import Solver
from fginfer.tables import AbsDiff, Potts, SqDiff, TableRef

if TYPE_CHECKING:
    from fginfer import oracles
    from fginfer.viewer import view

__version__ = VERSION
__all__ = [
    "AbsDiff",
    "Automaton",
    "BatchResult",
    "Conditioned",
    "Explanation",
    "Factor",
    "FactorGraph",
    "FginferError",
    "FormatError",
    "Handle",
    "KBest",
    "Lowered",
    "Marginals",
    "MaxMarginals",
    "ModelError",
    "Potts",
    "Progress",
    "Result",
    "Samples",
    "SettingsError",
    "Shard",
    "Sharded",
    "Solver",
    "SolverError",
    "SqDiff",
    "TableRef",
    "TracePoint",
    "available_methods",
    "explain",
    "k_best",
    "load",
    "marginals",
    "max_marginals",
    "oracles",
    "read",
    "read_evidence",
    "read_solution",
    "sample",
    "solve",
    "solve_batch",
    "solve_many",
    "view",
    "write",
    "write_evidence",
    "write_solution",
]


# Imported when they are first asked for: a solve needs none of them, nor scipy, whose import takes longer than ours.
_LATER = ("extreme", "interop", "latent", "learn", "nn", "oracles", "plots", "reference", "trim")
# Names that are looked for here and live in a room of their own.
_ELSEWHERE = {
    "compare": "compare",
    "ChainCRF": "learn",
    "ExtremeClassifier": "extreme",
    "GraphCRF": "learn",
    "LatentFeatureLasso": "latent",
    "StructuredSVM": "learn",
    "read_conll": "learn",
    "read_conllu": "learn",
    "read_svmlight": "learn",
}


def __getattr__(name: str) -> Any:
    if name == "view":  # the page is made by networkx and scipy, which a solve does not need
        return import_module("fginfer.viewer").view
    if name in _LATER:
        return import_module(f"fginfer.{name}")
    where = "plots" if name.startswith("plot_") else _ELSEWHERE.get(name)
    hint = f"; from fginfer.{where} import {name}" if where else ""
    raise AttributeError(f"module 'fginfer' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
