"""One run in a process of its own, so that its memory can be measured and a crash stays its own.

Reads a job (JSON) from standard input and prints the answer (JSON). Started by fginfer.compare.runs.
"""

from __future__ import annotations

import json
import sys
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


def _own(graph: FactorGraph, job: dict[str, Any]) -> dict[str, Any]:
    result = solve(
        graph,
        job["method"],
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


def _peer(graph: FactorGraph, job: dict[str, Any]) -> dict[str, Any]:
    answer = PEERS[job["method"]].run(graph, job["seconds"])
    return {
        "labels": None if answer.labels is None else answer.labels.tolist(),
        "bound": known(answer.bound),
        "status": answer.status,
        "seconds": answer.seconds,
        "iterations": None,
        "trace": [],
        "unit": graph.model.unit,
    }


def main() -> None:
    job = json.load(sys.stdin)
    graph = read(job["path"], max_memory=job["max_memory"])
    whole = graph
    given = None
    if job["evidence"] is not None:
        given = graph.condition(read_evidence(job["evidence"], graph))
        graph = given.graph
    answer = (_peer if job["method"] in PEERS else _own)(graph, job)
    if answer["labels"] is not None and given is not None:
        answer["labels"] = given.expand(answer["labels"]).tolist()
    score = None if answer["labels"] is None else known(whole.score(answer["labels"]))
    answer |= {"score": score, "peak_mb": _peak_mb()}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except FginferError as error:  # in one line, for the table
        sys.exit(str(error))
