"""The solvers by name, and the oracle a problem needs."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from types import NoneType
from typing import Any
from warnings import warn

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fginfer.core.learn import Edges, Kind
from fginfer.errors import SettingsError
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import MapOracle, MatchingOracle, Oracle
from fginfer.learn.row_weights import LARGE
from fginfer.learn.solvers.batch import CuttingPlane, FrankWolfe
from fginfer.learn.solvers.bcfw import Bcfw
from fginfer.learn.solvers.block import BlockOptions
from fginfer.learn.solvers.dcd import Dcd
from fginfer.learn.solvers.gdmm import GdmmSets, GdmmTokens, SoftSets, SoftTokens
from fginfer.learn.solvers.gdmm_options import GdmmOptions
from fginfer.learn.solvers.online import Mira, Perceptron, Ssg

BLOCK = {"bcfw": Bcfw, "dcd": Dcd, "perceptron": Perceptron, "mira": Mira, "ssg": Ssg}
GDMM: dict[str, dict[int, Any]] = {
    "gdmm": {Kind.LABELS: GdmmTokens, Kind.SETS: GdmmSets},
    "soft-bcfw": {Kind.LABELS: SoftTokens, Kind.SETS: SoftSets},
}
BATCH: dict[str, Any] = {"fw": FrankWolfe, "cutting-plane": CuttingPlane}
SOLVERS = ("gdmm", *BLOCK, *BATCH, "soft-bcfw")


def choose_solver(name: str, model: str, pairwise: bool) -> str:
    """What "auto" stands for: bcfw, which asks for best answers; gdmm where those are hard to find and it needs none,
    for label sets with interactions. Sequences with thousands of labels stay with bcfw: gdmm is at its objective in
    half of the time on zh_pinyin with C = .2, but not with C = 5, nor on easy sets of 1000 labels at C = .01 and .3."""
    if name != "auto":
        return name
    return "gdmm" if model == "multilabel" and pairwise else "bcfw"


def wants_rows(solver: str, data: Encoded, oracle: Oracle | None, options: dict[str, Any]) -> bool:
    """Whether weights are kept by rows of features: where dense vectors would be large, and the solver can."""
    able = solver in BLOCK and data.kind == Kind.LABELS and oracle is None and not has_cycles(data)
    asked, unary = options.get("sparse") if solver in BLOCK else None, data.rows.shape[1] * data.n_labels
    if asked and not able:
        raise SettingsError("sparse weights are for tokens with labels, decoded by the core: chains, trees, multiclass")
    if not able and data.kind == Kind.LABELS and unary >= 8 * LARGE:
        warn(
            f"{solver} keeps {unary:,} weights as dense vectors of {unary / 2**27:.1f} GB each;"
            f" {', '.join(BLOCK)} on chains and trees keep only those that are not zero", UserWarning, stacklevel=4,
        )  # fmt: skip
    return able and (unary >= LARGE if asked is None else bool(asked))


def has_cycles(data: Encoded) -> bool:
    """Whether one of the graphs is no forest, so that the MAP engine decodes it."""
    if data.edges != Edges.LIST or data.edge_begin is None or data.edge_u is None or data.edge_v is None:
        return False
    owner = np.repeat(data.token_begin[:-1], np.diff(data.edge_begin))
    tokens, edges = int(data.token_begin[-1]), len(data.edge_u)
    joined = sp.coo_matrix((np.ones(edges), (owner + data.edge_u, owner + data.edge_v)), shape=(tokens, tokens))
    return bool(tokens - connected_components(joined, directed=False)[0] != edges)


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
    batch = BATCH[name]
    if batch.options_type is not None:
        return batch(learner, oracle, C, build(batch.options_type, rest, name))
    if rest:
        raise SettingsError(f"{name} has no option {', '.join(sorted(rest))}")
    return batch(learner, oracle, C)


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
