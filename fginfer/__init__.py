"""fginfer: MAP inference in factor graphs. Scores are maximised; energy = -score; -inf forbids a state."""

from importlib.metadata import version

from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError
from fginfer.formats import read
from fginfer.graph import Factor, FactorGraph
from fginfer.result import Result, TracePoint
from fginfer.tables import AbsDiff, Potts, SqDiff, TableRef

__version__ = version("fginfer")
__all__ = [
    "AbsDiff",
    "Factor",
    "FactorGraph",
    "FginferError",
    "FormatError",
    "ModelError",
    "Potts",
    "Result",
    "SettingsError",
    "SolverError",
    "SqDiff",
    "TableRef",
    "TracePoint",
    "read",
]
