"""One run in a process of its own, so that its memory can be measured and a crash stays its own.

Reads a job (JSON) from standard input and prints the answer (JSON). Started by fginfer.compare.runs.
"""

from __future__ import annotations

import json
import sys
from math import inf
from typing import Any

from fginfer.compare.peers import PEERS
from fginfer.errors import FginferError
from fginfer.formats import read, read_evidence
from fginfer.graph import FactorGraph
from fginfer.result import known
from fginfer.solve import solve


def _peak_mb() -> float:
    """Peak resident memory of this process and of the programs it started; 0 where that is not told (Windows)."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1024.0 if sys.platform != "darwin" else 1024.0 * 1024.0
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / unit


def _own(graph: FactorGraph, evidence: dict[int, int] | None, job: dict[str, Any]) -> dict[str, Any]:
    result = solve(
        graph,
        job["method"],
        evidence=evidence,
        time_limit=job["seconds"],
        seed=job["seed"],
        threads=job["threads"],
        gap=job["gap"],
        dual=False,
    )
    return {
        "labels": None if result.labels is None else result.labels.tolist(),
        "bound": known(result.bound),
        "status": result.status,
        "seconds": result.seconds,
        "iterations": result.iterations,
        "trace": [[p.seconds, known(p.score), known(p.bound)] for p in result.trace],
        "unit": result.unit,
    }


def _peer(graph: FactorGraph, evidence: dict[int, int] | None, job: dict[str, Any]) -> dict[str, Any]:
    given = None if evidence is None else graph.condition(evidence)
    asked = graph if given is None else given.graph
    tables = asked.lowered().graph if asked.rules else asked  # what peers can hold
    answer = PEERS[job["method"]].run(tables, job["seconds"])
    labels = None if answer.labels is None else answer.labels[: asked.n_variables]
    labels = labels if labels is None or given is None else given.expand(labels)
    return {
        "labels": None if labels is None else labels.tolist(),
        "bound": known(answer.bound),
        "status": answer.status,
        "seconds": answer.seconds,
        "iterations": None,
        "trace": [],
        "unit": tables.model.unit,
    }


def answer_of(job: dict[str, Any]) -> dict[str, Any]:
    """What a method or peer finds, re-scored in the whole model; a labeling that is not above the cutoff is none."""
    graph = read(job["path"], max_memory=job["max_memory"])
    evidence = None if job["evidence"] is None else read_evidence(job["evidence"], graph)
    answer = (_peer if job["method"] in PEERS else _own)(graph, evidence, job)
    score = -inf if answer["labels"] is None else graph.score(answer["labels"])
    if not score > graph.cutoff:
        answer["labels"] = None
    return answer | {"score": None if answer["labels"] is None else known(score), "peak_mb": _peak_mb()}


def main() -> None:
    json.dump(answer_of(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except FginferError as error:  # in one line, for the table
        sys.exit(str(error))
