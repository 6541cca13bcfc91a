"""How fast, and in how much memory, the UAI reader reads: against numpy.fromstring(text, sep=" ") on the same text.

usage: python -m bench uai_speed FILE.uai[.gz ...] [--repeat N] [--threads N]
       (ImageAlignment_13.uai.gz is 64 MB of text)

The file is uncompressed first (decompression is not what is measured). numpy only parses the numbers; fginfer also
takes their logarithms, finds equal tables and builds the model. CPU seconds, best of N, in one run of one process.
Memory is measured in a fresh process each: what reading adds to its peak, relative to the tables of the model. With
--threads also seconds by the wall, with one and with so many, of the text and of the file as it is, where that is
compressed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fginfer
from fginfer.formats.streams import open_binary, split_compression

PEAK = """
import sys
import fginfer
def peak():
    with open("/proc/self/status") as status:  # VmHWM, not ru_maxrss: the latter is inherited from the parent
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
warm = sys.argv[2]
fginfer.read(warm)
before = memory()
graph = fginfer.read(sys.argv[1])
a = graph.to_arrays()
print(peak() - before, a.values.nbytes + a.unary.nbytes)
"""


def best(repeat: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def show_threads(name: str, path: Path, threads: int, repeat: int) -> None:
    """Best of the repeats, taken in turns: a busy moment meets both."""
    seconds = {1: float("inf"), threads: float("inf")}
    for _ in range(repeat):
        for count in seconds:
            start = time.perf_counter()
            fginfer.read(path, threads=count)
            seconds[count] = min(seconds[count], time.perf_counter() - start)
    shown = ", ".join(f"{count}: {taken:.3f} s" for count, taken in seconds.items())
    print(f"{name[:44]:44s} threads {shown}, {seconds[1] / seconds[threads]:.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    speeds = f"{'MB':>6s} {'numpy MB/s':>10s} {'fginfer MB/s':>12s} {'ratio':>6s}"
    print(f"{'file':44s} {speeds} {'tables MB':>9s} {'peak/tables':>11s}")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.uai"
        small.write_text("MARKOV 1 2 1 1 0 2 0.5 0.5")
        for path in options.file:
            plain = Path(folder) / "model.uai"
            with open_binary(path) as stream:
                plain.write_bytes(stream.read())
            text = plain.read_text()
            numbers = text.partition("\n")[2]  # without the word MARKOV or BAYES
            size = len(text) / 1e6
            slow = best(options.repeat, lambda numbers=numbers: np.fromstring(numbers, sep=" "))
            fast = best(options.repeat, lambda plain=plain: fginfer.read(plain))
            run = [sys.executable, "-P", "-c", PEAK, str(plain), str(small)]
            peak, tables = map(int, subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()[-2:])
            speeds = f"{size:6.1f} {size / slow:10.1f} {size / fast:12.1f} {slow / fast:6.1f}"
            print(f"{path.name[:44]:44s} {speeds} {tables / 1e6:9.1f} {peak / tables:11.2f}", flush=True)
            if options.threads > 1:
                show_threads("  its text", plain, options.threads, options.repeat)
                if split_compression(path)[1]:
                    show_threads("  as it is", path, options.threads, options.repeat)


if __name__ == "__main__":
    main()
