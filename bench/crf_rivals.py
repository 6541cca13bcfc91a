"""CRFsuite and Wapiti on the data of bench/crf.py, as runs (bench/crf_runs.py). Both run once, in one piece.

Both have the same objective as ours: l1 penalty only, every feature with every label, every pair of labels. Their
clocks start when their data have been read. Wapiti is the program built from the C sources in PyPI's `libwapiti`:
cc -O3 -std=c99 cwapiti/src/*.c -lm -lpthread -o wapiti
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from crf_runs import Run


def run_crfsuite(runs, train, l1, iterations):
    import pycrfsuite

    run = runs.load("crfsuite")
    if run.over:
        return run
    X, y, begin = train
    names = [str(j) for j in range(X.shape[1])]
    trainer = pycrfsuite.Trainer(verbose=True)
    start = 0.0
    lines: list[tuple[float, str]] = []
    trainer.message = lambda text: lines.append((time.process_time() - start, text))
    for b, e in pairwise(begin):
        rows = [{names[j]: v for j, v in zip(X.indices[X.indptr[t] : X.indptr[t + 1]],
                 X.data[X.indptr[t] : X.indptr[t + 1]], strict=True)} for t in range(b, e)]  # fmt: skip
        trainer.append(pycrfsuite.ItemSequence(rows), [str(label) for label in y[b:e]])
    trainer.select("lbfgs")
    trainer.set_params(
        {"c1": l1, "c2": 0.0, "feature.possible_states": 1, "feature.possible_transitions": 1, "epsilon": 1e-9,
         "delta": 1e-9, "max_iterations": iterations}
    )  # fmt: skip
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))
    trace, objective, passes = [], float("inf"), 0
    for seconds, text in lines:
        if found := re.match(r"Loss: ([-\d.e+]+)", text.strip()):
            objective, passes = float(found.group(1)), passes + 2
        elif found := re.match(r"Active features: (\d+)", text.strip()):
            trace.append((seconds, passes, objective, int(found.group(1))))
    run = Run(trace, [], time.process_time() - start, True)
    runs.save("crfsuite", run)
    return run


def run_wapiti(runs, program, train, l1, iterations, limit):
    """Features must be 0 or 1: Wapiti has no values."""
    run = runs.load("wapiti")
    if run.over:
        return run
    X, y, begin = train
    if not (X.data == 1).all():
        raise SystemExit("Wapiti takes features of 0 and 1 only")
    trace, start, total, begun = [], None, 0.0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with open(Path(folder) / "train.txt", "w", encoding="ascii") as file:
            for b, e in pairwise(begin):
                for t in range(b, e):
                    features = " ".join(f"u{j}" for j in X.indices[X.indptr[t] : X.indptr[t + 1]])
                    file.write(f"{features} b {y[t]}\n")
                file.write("\n")
        # -w: else it ends when the error on the training data rests for some steps
        command = [program, "train", "-a", "l-bfgs", "-1", str(l1), "-2", "0", "-i", str(iterations), "-e", "1e-9",
                   "-w", str(iterations), "--histsz", "10", str(Path(folder) / "train.txt"),
                   str(Path(folder) / "model")]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                now = cpu_seconds(process.pid)
                if now is not None:
                    total = now
                if start is None and "Train the model" in line:
                    start = total
                found = re.search(r"\[ *(\d+)\] obj=([\d.]+) +act=(\d+)", line)
                if found and start is not None:
                    trace.append((total - start, 2 * int(found[1]), float(found[2]), int(found[3])))
                    if limit and time.perf_counter() - begun > limit:
                        process.terminate()
    run = Run(trace, [], total - (start or 0.0), True)
    runs.save("wapiti", run)
    return run


def cpu_seconds(pid):
    """What a running process has used; None when it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
