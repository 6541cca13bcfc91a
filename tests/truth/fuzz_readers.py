"""Attacks every reader of the Python package with damaged files, and says how many inputs ran and were refused.

usage: python tests/truth/fuzz_readers.py [--inputs N] [--seconds S] [--seed S] [--reader NAME ...] [--folder DIR]
       (default: 10000 of each reader, all readers in turn, 1000 inputs at a time)

Every thousand inputs run in a process of their own, so that a crash is harm to be told, not the end. What does harm is
kept in DIR (default: a temporary folder); so is `counts`, to which a line is added for every thousand, and from which
the totals of all runs are printed: a line a reader. Another seed each time. The exit code is 1 after harm.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fuzz_shortcuts import take_shortcuts
from ledger import note
from readers import Reader, attack, learning_readers, model_readers

ROUND = 1000
WHOLE = 8  # every so many rounds of a reader go the whole way, without shortcuts
LONGEST = 600  # seconds of a round: more means that a file keeps a reader busy


def one_round(name: str, reader: Reader, room: Path, inputs: int, seed: int, folder: Path, short: bool) -> bool:
    """Whether a child process got through; what it refused goes into `counts`."""
    child = os.fork()
    if child == 0:
        log = open(folder / f"harm-{name}-{seed}.log", "w")  # noqa: SIM115 (a crash writes into it)
        faulthandler.enable(log)
        faulthandler.dump_traceback_later(LONGEST, exit=True, file=log)
        begin = time.process_time()
        code = 1
        try:
            if short:
                take_shortcuts(name.startswith("checkpoint"))
            refused = attack(reader, room, inputs, seed)
            with open(folder / "counts", "a") as counts:
                counts.write(f"{name} {inputs} {refused} {time.process_time() - begin:.2f}\n")
            code = 0
        except BaseException:
            traceback.print_exc(file=log)
            log.flush()
        os._exit(code)
    good = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if good:
        (folder / f"harm-{name}-{seed}.log").unlink()
        return True
    (folder / f"harm-{name}-{seed}{reader.suffix}").write_bytes((room / f"attacked{reader.suffix}").read_bytes())
    said = (folder / f"harm-{name}-{seed}.log").read_text()[-2000:]
    print(f"{name}: HARM, see {folder}/harm-{name}-{seed}.log\n{said}", flush=True)
    return False


def totals(folder: Path) -> None:
    """What ran in all, from the lines of every round."""
    inputs: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for line in (folder / "counts").read_text().splitlines() if (folder / "counts").exists() else []:
        name, n, no, spent = line.split()
        inputs[name] += int(n)
        refused[name] += int(no)
        seconds[name] += float(spent)  # type: ignore[assignment]
    for name in inputs:
        each = 1e3 * seconds[name] / inputs[name]
        print(f"{name:28}{inputs[name]:>10} inputs {refused[name]:>10} refused {each:>8.2f} ms each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", action="append")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk where it can be helped
    room = Path(tempfile.mkdtemp(prefix="fginfer-fuzz-", dir=memory))
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fginfer-fuzzed-"))
    folder.mkdir(parents=True, exist_ok=True)
    tried, harm = 0, 0
    readers = model_readers(room) | learning_readers(room)
    wanted, begin, done = list(args.reader or readers), time.monotonic(), 0
    while done < args.inputs and time.monotonic() - begin < args.seconds:
        now = min(ROUND, args.inputs - done)
        for name in wanted:
            if time.monotonic() - begin < args.seconds:
                seed, short = args.seed * 1_000_000 + done, done // ROUND % WHOLE != 0
                harm += not one_round(name, readers[name], room, now, seed, folder, short)
                tried += now
        done += now
    note("fuzz_readers.py", "inputs", tried, harm)
    totals(folder)
    for path in room.iterdir():
        path.unlink()
    room.rmdir()
    sys.exit(harm > 0)


if __name__ == "__main__":
    main()
