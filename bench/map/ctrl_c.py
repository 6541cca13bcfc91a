"""How long `fginfer solve` takes to print its incumbent after Ctrl-C.

    python -m bench ctrl_c MODEL [--method icm] [--times 5]

Printed: milliseconds from the signal to the end of the process, for each repetition.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time


def once(model: str, method: str) -> tuple[float, str]:
    command = [sys.executable, "-P", "-m", "fginfer", "solve", model, "--method", method, "--json", "--gap", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.split()[:1] and line.split()[0].isdigit():  # the first row of progress
                break
        time.sleep(0.3)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        return time.perf_counter() - start, str(json.loads(out)["status"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--method", default="icm")
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    for _ in range(args.times):
        seconds, status = once(args.model, args.method)
        print(f"{status}: {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
