"""UAI evidence and solution files: which variables are observed, and which labels a solver found."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.condition import observed
from fginfer.errors import ModelError
from fginfer.formats.streams import write_atomically
from fginfer.formats.tokens import Tokens
from fginfer.graph import FactorGraph
from fginfer.result import Result

_MOST = 1_000_000  # tokens of a file besides those that the model accounts for
_LARGEST = 2**31 - 1  # variables and labels of any model are below it


def _check_graph(graph: FactorGraph, call: str) -> None:
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"{call} takes the name of a file, then the FactorGraph it is for, not {type(graph).__name__}")


def read_evidence(path: str | PathLike[str], graph: FactorGraph | None = None) -> dict[int, int]:
    """Observed variables and their labels, checked against the graph they are for, if it is given.

    Two layouts are in use: `k v x v x ...` (k pairs of variable and label) and `1 k v x ...` (one sample, then the
    same). The number of tokens tells which: it is odd in the first and even in the second. No pairs mean no evidence.

    >>> write_evidence({3: 1, 0: 2}, "model.evid")
    >>> read_evidence("model.evid")
    {0: 2, 3: 1}
    """
    if graph is not None:
        _check_graph(graph, "read_evidence")
    tokens = Tokens(Path(path))
    n = tokens.count(_MOST + (4 * graph.n_variables if graph is not None else 0))
    if n % 2 == 0:
        samples = tokens.integer("the number of pairs")  # the error of an empty file says that it ends here
        if samples != 1:
            tokens.fail(f"evidence must be 'k v x ...' or '1 k v x ...'; {n} tokens and {samples} samples are neither")
    pairs = tokens.integer("the number of observed variables")
    evidence: dict[int, int] = {}
    for _ in range(pairs):
        variable = tokens.integer("an observed variable", 0, _LARGEST if graph is None else graph.n_variables - 1)
        labels = _LARGEST if graph is None else int(graph.cards[variable])
        label = tokens.integer(f"the label of variable {variable}", 0, labels - 1)
        if evidence.setdefault(variable, label) != label:
            tokens.fail(f"variable {variable} is observed twice, with labels {evidence[variable]} and {label}")
    tokens.end(f"{pairs} observed variables")
    return evidence


def write_evidence(evidence: Mapping[int, int], path: str | PathLike[str]) -> None:
    """Writes evidence in the layout `k v x v x ...`.

    >>> from pathlib import Path
    >>> write_evidence({3: 1, 0: 2}, "model.evid")
    >>> Path("model.evid").read_text().split()
    ['2', '0', '2', '3', '1']
    """
    known = observed(evidence)
    pairs = "".join(f" {variable} {label}" for variable, label in sorted(known.items()))
    with write_atomically(Path(path)) as stream:
        stream.write(f"{len(known)}{pairs}\n".encode())


def read_solution(path: str | PathLike[str], graph: FactorGraph) -> NDArray[np.int32]:
    """The labels in a solution file, checked against the graph.

    Read are `MPE` or `MAP` files as in the UAI competitions (the keyword, perhaps a number of solutions, the number of
    variables, the labels; of several solutions the last, which is the best), and bare lists of labels.

    >>> write_solution([1, 0], "model.MPE")
    >>> read_solution("model.MPE", FactorGraph([2, 2])).tolist()
    [1, 0]
    """
    _check_graph(graph, "read_solution")
    n = graph.n_variables
    tokens = Tokens(Path(path))
    count = tokens.count(_MOST + 100 * n)
    if tokens.peek().upper() in ("MPE", "MAP"):
        tokens.next("MPE or MAP")
        count -= 1
        if count > n + 1 and count % (n + 1) == 1:
            tokens.next("the number of solutions")
            count -= 1
        for _ in range(count - n - 1 if count % (n + 1) == 0 else 0):
            tokens.next("an earlier solution")
        if tokens.integer("the number of variables") != n:
            tokens.fail(f"a solution must start with the number of variables, {n}")
    labels = np.zeros(n, np.int32)
    for variable, card in enumerate(graph.cards.tolist()):
        labels[variable] = tokens.integer(f"the label of variable {variable} (of {n})", 0, card - 1)
    tokens.end(f"the labels of {n} variables")
    return labels


def write_solution(labels: Result | ArrayLike, path: str | PathLike[str]) -> None:
    """Writes labels, or those of a result, as a UAI solution file: `MPE`, the number of variables, their labels.

    >>> from pathlib import Path
    >>> write_solution([1, 0], "model.MPE")
    >>> Path("model.MPE").read_text().split()
    ['MPE', '2', '1', '0']
    """
    if isinstance(labels, Result):
        if labels.labels is None:
            raise ModelError("the result has no labeling to write")
        labels = labels.labels
    x = np.asarray(labels)
    if x.ndim != 1 or (x.size and not np.issubdtype(x.dtype, np.integer)):
        raise ModelError("write_solution takes a list of labels (integers) or a Result, then the name of a file")
    text = " ".join(map(str, [len(x), *x.tolist()]))
    with write_atomically(Path(path)) as stream:
        stream.write(f"MPE\n{text}\n".encode())
