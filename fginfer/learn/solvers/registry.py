"""The solvers by name, and the oracle a problem needs."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from types import NoneType
from typing import Any

import numpy as np

from fginfer.core.learn import Kind
from fginfer.errors import SettingsError
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import MapOracle, MatchingOracle, Oracle
from fginfer.learn.solvers.batch import CuttingPlane, FrankWolfe
from fginfer.learn.solvers.bcfw import Bcfw
from fginfer.learn.solvers.block import BlockOptions
from fginfer.learn.solvers.dcd import Dcd
from fginfer.learn.solvers.gdmm import GdmmOptions, GdmmSets, GdmmTokens, SoftSets, SoftTokens
from fginfer.learn.solvers.online import Mira, Perceptron, Ssg

BLOCK = {"bcfw": Bcfw, "dcd": Dcd, "perceptron": Perceptron, "mira": Mira, "ssg": Ssg}
GDMM: dict[str, dict[int, Any]] = {
    "gdmm": {Kind.LABELS: GdmmTokens, Kind.SETS: GdmmSets},
    "soft-bcfw": {Kind.LABELS: SoftTokens, Kind.SETS: SoftSets},
}
BATCH = {"fw": FrankWolfe, "cutting-plane": CuttingPlane}
SOLVERS = ("gdmm", *BLOCK, *BATCH, "soft-bcfw")


def choose_solver(name: str, model: str, pairwise: bool) -> str:
    """What "auto" stands for: bcfw, which asks for best answers; gdmm where those are hard to find and it needs none,
    for label sets with interactions."""
    if name != "auto":
        return name
    return "gdmm" if model == "multilabel" and pairwise else "bcfw"


def make_oracle(oracle: Oracle | None, model: str, learner: Learner) -> Oracle | None:
    """The user's oracle, or one that fits the problem; None when the core decodes it."""
    if oracle is not None:
        return oracle
    if model == "matching":
        return MatchingOracle()
    if model == "graph" and not learner.decodes:
        return MapOracle()
    return None


def make_solver(
    name: str, learner: Learner, oracle: Oracle | None, C: float, seed: int, options: dict[str, Any]
) -> Any:
    """A solver ready to run; unknown names and options are SettingsErrors that list the known ones."""
    if name not in SOLVERS:
        raise SettingsError(f"solver must be one of {', '.join(SOLVERS)}, not {name!r}")
    if name in BLOCK:
        return BLOCK[name](name, learner, oracle, C, seed, build(BlockOptions, options, name))
    if name in GDMM:
        kind = GDMM[name].get(learner.data.kind)
        if kind is None:
            others = ", ".join((*BLOCK, *BATCH))
            raise SettingsError(f"{name} takes tokens with labels and label sets; choices are trained with {others}")
        return kind(name, learner, oracle, C, seed, build(GdmmOptions, options, name))
    rest = {k: v for k, v in options.items() if k != "batch_size"}
    if rest:
        raise SettingsError(f"{name} has no option {', '.join(sorted(rest))}")
    return BATCH[name](learner, oracle, C)


def build(kind: Any, options: dict[str, Any], solver: str) -> Any:
    """An options dataclass from a dict; names, types and the range of whole numbers are checked here."""
    known = {f.name: f.type for f in fields(kind)}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise SettingsError(f"{solver} has no option {', '.join(unknown)}; its options are {', '.join(known)}")
    for name, value in options.items():
        wanted = _TYPES[known[name]]
        if not isinstance(value, wanted) or (isinstance(value, bool) and not str(known[name]).startswith("bool")):
            raise SettingsError(f"{solver}: the option {name} must be {known[name]}, not {value!r}")
        if isinstance(value, Integral) and abs(int(value)) >= 2**31:
            raise SettingsError(f"{solver}: the option {name} is out of range: {value!r}")
    return kind(**options)


_TYPES: dict[Any, tuple[type, ...]] = {
    "bool": (bool, np.bool_), "int": (Integral,), "float": (Real,), "str": (str,),
    "bool | None": (bool, np.bool_, NoneType), "int | None": (Integral, NoneType), "float | None": (Real, NoneType),
}  # fmt: skip
