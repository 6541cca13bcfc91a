"""UAI evidence and solution files: which variables are observed, and which labels a solver found."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import ModelError
from fginfer.formats.streams import write_atomically
from fginfer.formats.tokens import Tokens
from fginfer.graph import FactorGraph


def read_evidence(path: str | PathLike[str], graph: FactorGraph) -> dict[int, int]:
    """Observed variables and their labels, checked against the graph.

    Two layouts are in use: `k v x v x ...` (k pairs of variable and label) and `1 k v x ...` (one sample, then the
    same). The number of tokens tells which: it is odd in the first and even in the second. No pairs mean no evidence.
    """
    file = Path(path)
    count = Tokens(file)
    n = 0
    while count.next_or_none() is not None:
        n += 1
    tokens = Tokens(file)
    if n % 2 == 0:
        samples = tokens.integer("the number of pairs")  # of an empty file: says that it ends here
        if samples != 1:
            tokens.fail(f"evidence must be 'k v x ...' or '1 k v x ...'; {n} tokens and {samples} samples are neither")
    pairs = tokens.integer("the number of observed variables")
    evidence: dict[int, int] = {}
    for _ in range(pairs):
        variable = tokens.integer("an observed variable", 0, graph.n_variables - 1)
        label = tokens.integer(f"the label of variable {variable}", 0, int(graph.cards[variable]) - 1)
        if evidence.setdefault(variable, label) != label:
            tokens.fail(f"variable {variable} is observed twice, with labels {evidence[variable]} and {label}")
    tokens.end(f"{pairs} observed variables")
    return evidence


def write_evidence(path: str | PathLike[str], evidence: dict[int, int]) -> None:
    """Writes evidence in the layout `k v x v x ...`."""
    pairs = "".join(f" {variable} {label}" for variable, label in sorted(evidence.items()))
    with write_atomically(Path(path)) as stream:
        stream.write(f"{len(evidence)}{pairs}\n".encode())


def read_solution(path: str | PathLike[str], graph: FactorGraph) -> NDArray[np.int32]:
    """The labels in a solution file, checked against the graph.

    Read are `MPE` or `MAP` files as in the UAI competitions (the keyword, perhaps a number of solutions, the number of
    variables, the labels; of several solutions the last, which is the best), and bare lists of labels.
    """
    tokens = Tokens(Path(path))
    words: list[tuple[int, str]] = []
    while (token := tokens.next_or_none()) is not None:
        words.append((tokens.line, token))
    n = graph.n_variables
    if not words:
        tokens.fail("the file is empty")
    if words[0][1].upper() in ("MPE", "MAP"):
        words = words[1:]
        if len(words) > n + 1 and len(words) % (n + 1) == 1:
            words = words[1:]  # the number of solutions
        if len(words) >= n + 1:
            words = words[-(n + 1) :]
        if words:
            tokens.line, tokens.token = words[0]
            if tokens.token != str(n):
                tokens.fail(f"a solution must start with the number of variables, {n}")
            words = words[1:]
    if len(words) != n:
        tokens.line, tokens.token = words[-1] if words else (tokens.line, "end of file")
        tokens.fail(f"the model has {n} variables, the file {len(words)} labels")
    labels = np.zeros(n, np.int32)
    for variable, (tokens.line, tokens.token) in enumerate(words):
        top = int(graph.cards[variable]) - 1
        if not (
            tokens.token.isascii() and tokens.token.isdigit() and len(tokens.token) < 19 and int(tokens.token) <= top
        ):
            tokens.fail(f"expected the label of variable {variable}, from 0 to {top}")
        labels[variable] = int(tokens.token)
    return labels


def write_solution(path: str | PathLike[str], labels: ArrayLike) -> None:
    """Writes labels as a UAI solution file: `MPE`, then the number of variables and their labels."""
    x = np.asarray(labels)
    if x.ndim != 1 or (x.size and not np.issubdtype(x.dtype, np.integer)):
        raise ModelError("a solution must be a list of labels (integers)")
    text = " ".join(map(str, [len(x), *x.tolist()]))
    with write_atomically(Path(path)) as stream:
        stream.write(f"MPE\n{text}\n".encode())
