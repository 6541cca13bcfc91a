"""Attacks every reader of the Python package with damaged files, and says how many inputs ran and were refused.

usage: python bench/fuzz_readers.py [--inputs N] [--seed S] [--reader NAME ...]     (default: 10000 of each reader)

Prints a line a reader. A reader that raises what is not fginfer's own error is done: the file that led to it is kept,
and the exit code is 1.
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from readers import attack, learning_readers, model_readers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", action="append")
    args = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk where it can be helped
    folder = Path(tempfile.mkdtemp(prefix="fginfer-fuzz-", dir=memory))
    readers = model_readers(folder) | learning_readers(folder)
    failed = False
    for name in args.reader or readers:
        begin = time.process_time()
        print(f"{name:24}", end="", flush=True)
        try:
            refused = attack(readers[name], folder, args.inputs, args.seed)
        except Exception:
            print(f"FAILED, see {folder}\n{traceback.format_exc()}", flush=True)
            failed = True
            continue
        print(f"{args.inputs:>10} inputs {refused:>10} refused {time.process_time() - begin:>8.1f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
