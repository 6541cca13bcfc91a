"""Runs the command line in this process, and writes small models for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fginfer import FactorGraph
from fginfer.cli import main
from fginfer.formats import write


def run(capsys: Any, *args: object) -> tuple[int, str, str]:
    code = main([str(a) for a in args])
    out, err = capsys.readouterr()
    return code, out, err


def strict_json(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def grid(path: Path, side: int = 6, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(0)
    index = np.arange(side * side).reshape(side, side)
    right = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], 1)
    edges = np.concatenate([right, down])
    graph = FactorGraph.from_arrays(
        [labels] * side**2,
        rng.normal(size=(side**2, labels)),
        edges,
        tables=rng.normal(size=(len(edges), labels, labels)),
    )
    write(graph, path)
    return graph
