"""Folders of models with an INDEX.tsv: file, evidence, best_score_ln."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

import numpy as np

from fginfer import FactorGraph
from fginfer.formats import read, read_evidence


def indexed(folder: Path) -> list[dict[str, str]]:
    """The rows of a folder's index."""
    with open(folder / "INDEX.tsv", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def load(folder: Path, name: str, evidence: str) -> FactorGraph:
    """A model whose observed variables may take only the observed label; `-`: none is observed."""
    graph = read(folder / name)
    if evidence != "-":
        for variable, label in read_evidence(folder / evidence, graph).items():
            scores = np.full(int(graph.cards[variable]), -inf)
            scores[label] = graph.unary(variable)[label]
            graph.set_unary(variable, scores)
    return graph


def number(text: str) -> float:
    """A cell of an index; nan where there is none."""
    return float(text) if text not in ("-", "") else float("nan")
