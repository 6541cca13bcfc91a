"""The figures on the manual's benchmark page: runs the benches that need no data files, and writes what they print.

    python bench/report.py [--only growth,binary]       then build the manual: sphinx-build docs build/docs

Takes some minutes. The page shows the machine and the date; it is never committed, like all results.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

import fginfer

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "how" / "measured.md"

# Small enough to be run whenever the manual is built for a release; each script's own defaults are the full sizes.
RUNS = (
    ("What a call costs", "overhead.py", []),
    ("Work against the number of labels", "growth.py", ["--most", "1024", "--iterations", "30"]),
    ("Many binary factors", "binary.py", ["--variables", "500", "--share", "0.002,0.01", "--seconds", "3"]),
    ("The oracle API beside the learner in C", "oracle_api.py", []),
    ("Building large models", "building.py", ["--pairs", "1000000"]),
    ("Methods against brute force", "differential.py", ["--models", "300"]),
)


def processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def measured(script: str, arguments: list[str]) -> str:
    """What a bench prints, errors included: a failure has to show on the page."""
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], capture_output=True, text=True, check=False)
    failure = f"\nexit code {done.returncode}\n{done.stderr[-2000:]}" if done.returncode else ""
    return done.stdout.rstrip() + failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words, separated by commas; a bench is run if its name has one")
    words = parser.parse_args().only.split(",")
    today = datetime.date.today().isoformat()
    machine = f"{processor()}, {os.cpu_count()} threads, {platform.system()}, Python {platform.python_version()}"
    parts = [f"## As measured\n\nfginfer {fginfer.__version__}, {machine}, {today}.\n"]
    for title, script, arguments in RUNS:
        if any(word in script for word in words):
            command = " ".join(["python", f"bench/{script}", *arguments])
            print(command, flush=True)
            parts.append(f"### {title}\n\n`{command}`\n\n```text\n{measured(script, arguments)}\n```\n")
            PAGE.write_text("\n".join(parts))  # what was measured is kept if a later bench is stopped
    return 0


if __name__ == "__main__":
    sys.exit(main())
