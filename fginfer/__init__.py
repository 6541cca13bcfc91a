"""fginfer: MAP inference in factor graphs. Scores are maximised; energy = -score; -inf forbids a state."""

import fginfer.startup  # before everything else: from here on, Ctrl-C in our command is quiet

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

import fginfer.portfolio.auto  # noqa: F401  (the default method: no solve has to wait for its import)
from fginfer.condition import Conditioned
from fginfer.core.door import VERSION
from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError
from fginfer.formats import read, read_evidence, read_solution, write, write_evidence, write_solution
from fginfer.graph import FactorGraph
from fginfer.labelings import Factor
from fginfer.marginals import Marginals, marginals
from fginfer.methods import available_methods
from fginfer.result import Progress, Result, TracePoint
from fginfer.solve import solve, solve_many
from fginfer.solver import Solver
from fginfer.tables import AbsDiff, Potts, SqDiff, TableRef

if TYPE_CHECKING:
    from fginfer import oracles

__version__ = VERSION
__all__ = [
    "AbsDiff",
    "Conditioned",
    "Factor",
    "FactorGraph",
    "FginferError",
    "FormatError",
    "Marginals",
    "ModelError",
    "Potts",
    "Progress",
    "Result",
    "SettingsError",
    "Solver",
    "SolverError",
    "SqDiff",
    "TableRef",
    "TracePoint",
    "available_methods",
    "marginals",
    "oracles",
    "read",
    "read_evidence",
    "read_solution",
    "solve",
    "solve_many",
    "write",
    "write_evidence",
    "write_solution",
]


# Imported when they are first asked for: a solve needs none of them, nor scipy, whose import takes longer than ours.
_LATER = ("extreme", "latent", "learn", "oracles", "plots", "reference", "trim")
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
    if name in _LATER:
        return import_module(f"fginfer.{name}")
    where = "plots" if name.startswith("plot_") else _ELSEWHERE.get(name)
    hint = f"; from fginfer.{where} import {name}" if where else ""
    raise AttributeError(f"module 'fginfer' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
