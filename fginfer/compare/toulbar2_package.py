"""pytoulbar2 in a process of its own, which can be killed when its time is over: MODEL, whole SECONDS, SOLUTION.

It imports nothing of fginfer, so that it starts soon. It prints a line when it begins, and one with how it ended.
"""

from __future__ import annotations

import sys
import time
from typing import Any


def status(model: str, seconds: int, solution: str) -> str:
    """optimal, infeasible or time_limit; the labels are in the file."""
    import pytoulbar2

    print("ready", flush=True)
    try:
        problem = pytoulbar2.CFN()
        problem.Read(model)
        start = time.perf_counter()
        answer: Any = problem.Solve(timeLimit=seconds, writeSolution=solution)
    except Exception as error:
        if type(error).__name__ == "Contradiction":  # known as soon as the file is read
            return "infeasible"
        raise
    if answer is None:  # it says the same of a proof and of a limit
        return "infeasible" if time.perf_counter() - start < seconds else "time_limit"
    with open(solution, "w") as stream:
        stream.write(" ".join(map(str, answer[0])))
    return "optimal" if problem.GetDDualBound() >= answer[1] else "time_limit"


if __name__ == "__main__":
    print("status", status(sys.argv[1], int(sys.argv[2]), sys.argv[3]), flush=True)
