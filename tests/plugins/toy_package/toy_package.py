"""A package that adds a format, a command and a method to fginfer."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from fginfer import FactorGraph, Result
from fginfer.budget import Budget
from fginfer.core import clock
from fginfer.engine import Settings
from fginfer.formats import Format
from fginfer.result import Progress


def read_toy(path: Path, budget: Budget) -> FactorGraph:
    """A line of label counts, then a line of unary scores a variable."""
    rows = [line.split() for line in path.read_text().splitlines()]
    graph = FactorGraph([int(word) for word in rows[0]])
    for v, row in enumerate(rows[1:]):
        graph.add_factor([v], [float(word) for word in row])
    return graph


def write_toy(graph: FactorGraph, path: Path) -> None:
    lines = [graph.cards.tolist(), *(graph.unary(v).tolist() for v in range(graph.n_variables))]
    path.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))


FORMAT = Format((".toy",), read_toy, write_toy, "unary scores alone")


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser("count", help="how many labelings a model has")
    parser.add_argument("cards", nargs="+", type=int)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    print(int(np.prod(args.cards)))
    return 0


class FirstEngine:
    """Takes the first label of every variable, and knows no bound."""

    def __init__(self, graph: FactorGraph, settings: Settings) -> None:
        self.settings, self._start = settings, clock.now()
        self._graph, self._labels = graph, np.zeros(graph.n_variables, np.int32)

    def run(self, seconds: float, iterations: int) -> str:
        return "converged"

    def result(self) -> Result:
        took, s = clock.now() - self._start, self.settings
        score = self._graph.score(self._labels)
        return Result("first", "converged", self._labels, score, None, 1, took, 0.0, s.threads, s.seed)

    def progress(self) -> Progress:
        return Progress(clock.now() - self._start, 1, self._graph.score(self._labels), None, None, None)

    def offer(self, labels: Any) -> None:
        """The first labels are what it takes."""

    def warm_start(self, messages: Any) -> bool:
        return False

    def update(self, graph: FactorGraph) -> None:
        self._graph = graph
