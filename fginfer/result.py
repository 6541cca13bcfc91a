"""Result: what every solver returns, early or late."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray

from fginfer.archives import DAMAGE, load_arrays, other_archive, write_arrays
from fginfer.core.solver import EVENT
from fginfer.core.solver import relative_gap as native_gap
from fginfer.errors import FormatError, ModelError, UnwritableError
from fginfer.html import html_table
from fginfer.names import Names, number_of
from fginfer.options import file_named
from fginfer.printable import printable
from fginfer.replacing import replacing

Status = Literal[
    "running",
    "optimal",
    "gap_reached",
    "converged",
    "time_limit",
    "iteration_limit",
    "interrupted",
    "infeasible",
    "failed",
]

PROOFS = ("optimal", "gap_reached", "infeasible")  # statuses that a bound proves

_VERSION = 2  # the version of saved results; those of version 1 do not say so, and have no check sum
# Part of a score, or of the unit: a bound this far below its score may be, one further below is nonsense
_ROUNDING = 1e-9
# Types of the plain fields, as JSON has them.
_NUMBER, _NONE = (int, float), type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    "method": (str,), "status": (str,), "found_by": (str, _NONE), "proved_by": (str, _NONE),
    "proof": (str, _NONE),
    "access": (str, _NONE), "statistics": (dict,),
    "score": (*_NUMBER, _NONE), "bound": (*_NUMBER, _NONE), "unit": _NUMBER, "seconds": _NUMBER,
    "setup_seconds": _NUMBER, "iterations": (int,), "threads": (int,), "seed": (int,),
}  # fmt: skip


class TracePoint(NamedTuple):
    """One improvement: seconds since the start, best score and bound (None before the first)."""

    seconds: float
    score: float | None
    bound: float | None


class Progress(NamedTuple):
    """Where a running solver stands; handed to callbacks between slices."""

    seconds: float
    iterations: int
    score: float | None
    bound: float | None
    infeasibility: float | None = None  # how far the relaxed factors and variables disagree, where the method knows
    active: float | None = None  # mean number of active states per factor, where the method keeps active sets
    unit: float = 0.0  # the unit of the model: see Result.gap
    found_by: str | None = None  # who found the best labeling, where several look for one

    @property
    def gap(self) -> float | None:
        """As of a Result: how far the score can be from the best, relative to it."""
        return relative_gap(self.score, self.bound, self.unit)


class Trace(Sequence[TracePoint]):
    """The events of a run, kept as recorded in C and turned into TracePoints when looked at."""

    def __init__(self, events: NDArray[Any]) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, index: int) -> TracePoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TracePoint]: ...
    def __getitem__(self, index: int | slice) -> TracePoint | Sequence[TracePoint]:
        if isinstance(index, slice):
            return Trace(self.events[index])
        seconds, score, bound, _ = self.events[index].item()
        return TracePoint(seconds, known(score), known(bound))

    def __iter__(self) -> Iterator[TracePoint]:
        for seconds, score, bound, _ in self.events.tolist():
            yield TracePoint(seconds, known(score), known(bound))

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} events>"


class RelaxedMarginals(Sequence[NDArray[np.float64]]):
    """Relaxed marginals: entry i is the distribution over the labels of variable i. `flat` holds all of them."""

    def __init__(self, flat: NDArray[np.float64], cards: NDArray[np.int32]) -> None:
        self.flat = flat
        self.sizes = cards
        self._begin = np.concatenate(([0], np.cumsum(cards, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self._begin) - 1

    @overload
    def __getitem__(self, index: int) -> NDArray[np.float64]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NDArray[np.float64]]: ...
    def __getitem__(self, index: int | slice) -> NDArray[np.float64] | Sequence[NDArray[np.float64]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        return self.flat[self._begin[i] : self._begin[i + 1]]

    def __repr__(self) -> str:
        return f"<Marginals of {len(self)} variables>"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A labeling with its certificate. Scores are maximised; bound >= optimum >= score, rounding included.

    status: optimal (proven: no labeling is better by more than 1e-12 max(|score|, unit)), gap_reached, converged (the
    method has, a gap remains), time_limit, iteration_limit, interrupted, infeasible (proven: no labeling has a finite
    score above the cutoff), failed (memory or a method gave out: what was found until then). `labels` and `score` are
    None while no such labeling is known, `bound` while there is none (-inf when no labeling has a finite score).
    `messages` is the dual state, in the layout of fginfer.h.

    `unit` is the model's own: the smallest, over all factors with two distinct finite scores, of the best minus the
    next distinct one; 0 if no factor has two.

    `found_by` says who found the labeling: a method ("bnb"), "offer" (it was given), "unaries" (nobody had looked yet),
    "presolve"; of gdmm which of its ways, "sweep", "rounding", "local search" or "search". `proved_by` says whose bound
    proves what the status claims; both name several, with commas, where a model fell into parts. `access` is "sorted"
    or "dense", how the oracles of gdmm read tables. `proof` is about the file that was asked for: "complete", or which
    steps are without proof.
    """

    method: str
    status: Status
    labels: NDArray[np.int32] | None
    score: float | None
    bound: float | None
    iterations: int
    seconds: float
    setup_seconds: float
    threads: int
    seed: int
    trace: Sequence[TracePoint] = ()
    marginals: Sequence[NDArray[np.float64]] | None = None
    messages: NDArray[np.float64] | None = None
    statistics: dict[str, float] = field(default_factory=dict)
    unit: float = 0.0
    found_by: str | None = None
    access: str | None = None
    names: Names | None = None  # names of the variables and labels of the graph, if it has any
    proved_by: str | None = None
    proof: str | None = None  # what the file holds that was asked for: "complete", or what is without proof

    def __getitem__(self, variable: int | str) -> int | str:
        """The label of a variable, by its number or name; the label's name if it has one.

        >>> from fginfer import FactorGraph, solve
        >>> graph = FactorGraph(variables={"rain": ["no", "yes"]})
        >>> factor = graph.add_factor(["rain"], [0.0, 1.0])
        >>> solve(graph)["rain"]
        'yes'
        """
        at = number_of(self.names, variable)
        if self.labels is None:
            raise ModelError("the result has no labeling")
        if not hasattr(at, "__index__") or not 0 <= int(at) < len(self.labels):
            raise ModelError(f"there is no variable {variable!r}; there are {len(self.labels)}")
        label = int(self.labels[int(at)])
        return label if self.names is None else self.names.label(int(at), label)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a Result is no list; its labels are in `labels`, with names in `named()`")

    def named(self) -> dict[str | int, str | int]:
        """The labeling as a dict: variables and labels by name where they have one, by number where not.

        >>> from fginfer import FactorGraph, solve
        >>> graph = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3})
        >>> factor = graph.add_factor(["rain", "floor"], [0.0, 1.0, 2.0, 4.0, 3.0, 0.0])
        >>> solve(graph).named()
        {'rain': 'yes', 'floor': 0}
        """
        if self.labels is None:
            raise ModelError("the result has no labeling")
        return (self.names or Names()).named(self.labels.tolist())

    def __repr__(self) -> str:
        """One line, whatever the size of the model."""
        facts = [
            f"{name} {value!r}" for name, value in (("score", self.score), ("bound", self.bound)) if value is not None
        ]
        facts += [f"gap {self.gap:.1e}"] if self.gap is not None else []
        facts += ["fginfer.explain(graph) says why"] if self.status == "infeasible" else []
        if self.labels is not None:
            few = " ".join(self.first_labels(8))
            facts.append(f"labels [{few}{' ...' if len(self.labels) > 8 else ''}]")
        return f"<Result: {self.method}, {', '.join([self.status, *facts])}, {self.seconds:.3g} s>"

    @property
    def energy(self) -> float | None:
        """Minus the score."""
        return None if self.score is None else -self.score

    @property
    def gap(self) -> float | None:
        """max(0, bound - score) / max(|score|, unit), 0/0 being 0; None while either is missing.

        It does not change when all scores are multiplied by a power of two.
        """
        return relative_gap(self.score, self.bound, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values for JSON, None for what is infinite or not known: what the command line prints with
        --json. Arrays of the dual are left out."""
        named = {} if self.names is None else {"named": None if self.labels is None else self.named()}
        return {
            "method": self.method,
            "status": self.status,
            "score": known(self.score),
            "energy": known(self.energy),
            "bound": known(self.bound),
            "gap": known(self.gap),
            "unit": self.unit,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "setup_seconds": self.setup_seconds,
            "threads": self.threads,
            "seed": self.seed,
            "access": self.access,
            "found_by": self.found_by,
            "proved_by": self.proved_by,
            "proof": self.proof,
            "statistics": {k: known(float(v)) for k, v in self.statistics.items()},
            "labels": None if self.labels is None else self.labels.tolist(),
            **named,
            "trace": [[p.seconds, known(p.score), known(p.bound)] for p in self.trace],
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Writes all of it, messages and marginals too, as a .npz archive with a check sum that `load` reads."""
        events = [(p.seconds, _or(p.score, -inf), _or(p.bound, inf), 0) for p in self.trace]
        arrays: dict[str, Any] = {"trace": np.array(events, EVENT)}
        if self.labels is not None:
            arrays["labels"] = self.labels
        if self.messages is not None:
            arrays["messages"] = self.messages
        if self.marginals is not None:
            arrays["marginals"] = np.concatenate([np.zeros(0), *self.marginals])
            arrays["marginal_sizes"] = np.array([len(x) for x in self.marginals], np.int32)
        header = {k: v for k, v in self.to_dict().items() if k not in ("labels", "named", "trace", "gap", "energy")}
        if self.names is not None and self.labels is not None:
            arrays["names"] = np.frombuffer(self.names.to_json().encode(), np.uint8)
        header["version"] = _VERSION
        header["bound"] = None if self.bound is None else repr(self.bound)
        header["statistics"] = {k: repr(float(v)) for k, v in self.statistics.items()}
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        try:
            with replacing(file_named(path, "save")) as stream:
                write_arrays(stream, {"result": text, **arrays})
        except OSError as error:
            raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Result:
        """A result written by `save`. FormatError for a damaged file, and for one that says what no solver can: a
        bound below its score, a label below 0, a NaN."""
        arrays = load_arrays(path, "a saved result", has_checksum=_has_checksum)
        if "result" not in arrays:
            raise FormatError(f"not a saved result{other_archive(arrays)}", str(path))
        try:
            header = json.loads(arrays["result"].tobytes())
            if header.pop("version", 1) not in (1, _VERSION):
                raise ValueError("it was written by a later fginfer")
            marginals = None
            if "marginals" in arrays:
                sizes = _array(arrays, "marginal_sizes", np.int32)
                marginals = RelaxedMarginals(_array(arrays, "marginals", np.float64), sizes)
                if (sizes < 0).any() or sizes.sum(dtype=np.int64) != len(marginals.flat):
                    raise ValueError("marginals")
            header["bound"] = None if header["bound"] is None else float(header["bound"])
            header["statistics"] = {k: float(v) for k, v in header["statistics"].items()}
            trace = Trace(_array(arrays, "trace", EVENT))
            found = {name: _array(arrays, name, kind) for name, kind in (("labels", np.int32), ("messages", np.float64))
                     if name in arrays}  # fmt: skip
            names = _names(arrays, found.get("labels"))
            _check_labels(found.get("labels"), marginals)
            if any(np.isnan(trace.events[name]).any() for name in ("seconds", "score", "bound")):
                raise ValueError("its trace holds what is no number")
            return cls(labels=found.get("labels"), messages=found.get("messages"), marginals=marginals, trace=trace,
                       names=names, **_checked(header))  # fmt: skip
        except DAMAGE as error:
            reason = " ".join(str(error).split())[:200]
            raise FormatError(
                f"not a saved result, or damaged ({type(error).__name__}: {reason})", str(path)
            ) from error

    def _repr_html_(self) -> str:
        known = {"score": self.score, "bound": self.bound}
        rows: dict[str, object] = {"status": self.status}
        rows |= {name: "not known" if value is None else f"{value:.12g}" for name, value in known.items()}
        rows |= {"gap": "not known" if self.gap is None else f"{self.gap:.2g}"}
        rows |= {"method": self.method, "seconds": f"{self.seconds:.3f}"}
        if self.labels is not None:
            first = " ".join(self.first_labels(20))
            rows["labels"] = first if len(self.labels) <= 20 else f"{first} ... ({len(self.labels)} in all)"
        return html_table("Result", rows)

    def first_labels(self, most: int) -> list[str]:
        """The first labels as text: rain=yes where there are names."""
        some = [] if self.labels is None else self.labels[:most].tolist()
        if self.names is None:
            return list(map(str, some))
        return [printable(f"{variable}={label}") for variable, label in self.names.named(some).items()]

    @property
    def is_optimal(self) -> bool:
        """Whether the labeling is proven to be the best: the status is optimal."""
        return self.status == "optimal"


def _array(arrays: dict[str, NDArray[Any]], name: str, kind: Any) -> NDArray[Any]:
    """A list of such numbers, out of a file that may hold anything."""
    if arrays[name].ndim != 1 or arrays[name].dtype != np.dtype(kind):
        raise ValueError(f"{name} is no list of {kind}")
    return arrays[name]


def _names(arrays: dict[str, NDArray[Any]], labels: NDArray[np.int32] | None) -> Names | None:
    """Names that a file has for the variables of a labeling; each label must have one if any label of its variable
    has."""
    if "names" not in arrays or labels is None:
        return None
    names = Names.from_json(_array(arrays, "names", np.uint8).tobytes(), None, len(labels))
    names.named(labels.tolist())  # IndexError for a label without a name
    return names


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    """Fields of a saved result, each of its type: what shows and compares results relies on them."""
    for name, value in header.items():
        good = isinstance(value, _KINDS[name]) and not isinstance(value, bool)
        if not good or (name == "status" and value not in get_args(Status)):
            raise ValueError(f"{name} is {value!r}")
        if isinstance(value, float) and not (-inf < value < inf or (name == "bound" and value == -inf)):
            raise ValueError(f"{name} is {value}")
    if min(header["unit"], header["seconds"], header["setup_seconds"], header["iterations"]) < 0:
        raise ValueError("a time, a count or the unit is below 0")
    score, bound = header["score"], header["bound"]
    if score is not None and bound is not None and bound < score - _ROUNDING * max(abs(score), header["unit"]):
        raise ValueError(f"its bound {bound} is below its score {score}")
    return header


def _check_labels(labels: NDArray[np.int32] | None, marginals: RelaxedMarginals | None) -> None:
    if labels is None:
        return
    if (labels < 0).any():
        raise ValueError("a label is below 0")
    if marginals is not None and (len(labels) != len(marginals) or (labels >= marginals.sizes).any()):
        raise ValueError("its labels are not those of its marginals")


def _has_checksum(arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether a saved result was written with one: its version says so."""
    return "result" in arrays and "version" in json.loads(arrays["result"].tobytes())


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def known(value: float | None) -> float | None:
    """None for an infinite score or bound: nothing is known yet (and JSON has no infinities)."""
    return value if value is not None and -inf < value < inf else None


def relative_gap(score: float | None, bound: float | None, unit: float) -> float | None:
    """max(0, bound - score) / max(|score|, unit), 0/0 being 0; None while either is missing."""
    if score is None or bound is None or score == -inf or bound in (inf, -inf):
        return None
    return native_gap(score, bound, unit)
