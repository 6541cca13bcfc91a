"""CRFsuite and Wapiti on the data of crf.py, as runs (crf_runs.py). Both run once, in one piece.

Both have the same objective as ours: l1 penalty only, every feature with every label, every pair of labels. Their
clocks start when their data have been read. Wapiti is built from the C sources in PyPI's `libwapiti` (Debian's
package of that name is something else).
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from itertools import pairwise
from pathlib import Path


def step_behind():
    """In the process of a rival: where it has real-time priority, a little less than who listens to it on the same
    processor, and would otherwise not be heard before its end."""
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) == os.SCHED_FIFO:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_getparam(0).sched_priority - 1))


def train_crfsuite(pipe, train, l1, iterations):
    """In a process of its own: sends (CPU seconds of training, line of the log), as they come."""
    import pycrfsuite

    step_behind()
    X, y, begin = train
    names = [str(j) for j in range(X.shape[1])]
    trainer = pycrfsuite.Trainer(verbose=True)
    start = 0.0
    trainer.message = lambda text: pipe.send((time.process_time() - start, text))
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
    pipe.send((time.process_time() - start, ""))
    pipe.close()


def run_crfsuite(runs, train, l1, iterations, limit):
    """limit: CPU seconds of training, features and all."""
    run = runs.load("crfsuite")
    if run.trace:
        return run
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=train_crfsuite, args=(there, train, l1, iterations))
    child.start()
    there.close()
    objective, passes = float("inf"), 0
    try:
        while not limit or run.seconds < limit:
            run.seconds, text = here.recv()
            if found := re.match(r"Loss: ([-\d.e+]+)", text.strip()):
                objective, passes = float(found.group(1)), passes + 2
            elif found := re.match(r"Active features: (\d+)", text.strip()):
                run.trace.append((run.seconds, passes, objective, int(found.group(1))))
                runs.save("crfsuite", run)
            run.over = text == ""
    except EOFError:
        pass
    child.terminate()
    child.join()
    runs.save("crfsuite", run)
    return run


def find_wapiti(given):
    """The program itself, or a folder: it is built there, once, from the sources on PyPI."""
    place = Path(given)
    if not place.is_dir():
        return given
    program = place / "wapiti"
    if not program.exists():
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "libwapiti", "-d"]
        subprocess.run([*fetch, str(place)], check=True)
        with tarfile.open(next(place.glob("libwapiti-*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
        sources = map(str, sorted(place.glob("libwapiti-*/cwapiti/src/*.c")))
        subprocess.run(
            ["cc", "-O3", "-march=native", "-std=gnu99", "-fcommon", *sources, "-lm", "-lpthread", "-o", str(program)],
            check=True,
        )
    return str(program)


def write_wapiti(path, train):
    X, y, begin = train
    if not (X.data == 1).all():
        raise SystemExit("Wapiti takes features of 0 and 1 only")
    with open(path, "w", encoding="utf-8") as file:
        for b, e in pairwise(begin):
            for t in range(b, e):
                features = " ".join(f"u{j}" for j in X.indices[X.indptr[t] : X.indptr[t + 1]])
                file.write(f"{features} b {y[t]}\n")
            file.write("\n")


def run_wapiti(runs, program, train, l1, iterations, limit):
    """Features must be 0 or 1: Wapiti has no values. limit: CPU seconds of training."""
    run = runs.load("wapiti")
    if run.trace:
        return run
    start, total = None, 0.0
    with tempfile.TemporaryDirectory() as folder:
        write_wapiti(Path(folder) / "train.txt", train)
        # -w: else it ends when the error on the training data rests for some steps
        command = [find_wapiti(program), "train", "-a", "l-bfgs", "-1", str(l1), "-2", "0", "-i", str(iterations),
                   "-e", "1e-9", "-w", str(iterations), "--histsz", "10", str(Path(folder) / "train.txt"),
                   str(Path(folder) / "model")]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=step_behind) as process:
            assert process.stderr is not None
            for line in process.stderr:
                total = cpu_seconds(process.pid) or total
                if start is None and "Train the model" in line:
                    start = total
                found = re.search(r"\[ *(\d+)\] obj=([\d.]+) +act=(\d+)", line)
                if found and start is not None:
                    run.seconds = total - start
                    run.trace.append((run.seconds, 2 * int(found[1]), float(found[2]), int(found[3])))
                    runs.save("wapiti", run)
                    if limit and run.seconds > limit:
                        process.terminate()
            run.over = process.wait() == 0
    runs.save("wapiti", run)
    return run


def cpu_seconds(pid):
    """What a running process has used; None when it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
