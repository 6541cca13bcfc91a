"""fginfer: MAP inference in factor graphs. Scores are maximised; energy = -score; -inf forbids a state."""

from importlib.metadata import version

from fginfer.errors import FginferError, FormatError, ModelError, SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.result import Result, TracePoint
from fginfer.tables import AbsDiff, Potts, SqDiff

__version__ = version("fginfer")
__all__ = [
    "AbsDiff",
    "FactorGraph",
    "FginferError",
    "FormatError",
    "ModelError",
    "Potts",
    "Result",
    "SettingsError",
    "SolverError",
    "SqDiff",
    "TracePoint",
]
