"""The figures of docs/how/benchmarks.md: runs the commands on that page and puts what they print below them.

    python -m bench report [--only growth binary] [--datasets DIR] [--instances DIR]

A command stands on the page in an HTML comment, `<!-- bench NAME ARGUMENTS -->`; what follows it, down to
`<!-- end -->`, is written by this script: the command, the date, the machine, the commit, and what was printed.
Nothing else writes there. DATASETS and INSTANCES in a command stand for the two folders; commands that want a folder
which is not given are left as they are.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from bench.common.clock import again

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how" / "benchmarks.md"
BLOCK = re.compile(r"(<!-- bench (\w+)(.*?) -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)


def processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def build() -> str:
    """The last commit that changed the core or the package, and whether the checkout differs from it."""

    def git(*arguments: str) -> str:
        call = ["git", "-C", str(ROOT), *arguments, "--", "csrc", "fginfer"]
        return subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip()

    commit = git("log", "-1", "--format=%h") or "unknown"
    return f"{commit} with changes" if git("status", "--short") else commit


def measured(name: str, arguments: list[str]) -> str:
    """What a bench prints, errors included: a failure has to show on the page."""
    done = subprocess.run(again(name, *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    failure = f"\nexit code {done.returncode}\n{done.stderr[-2000:]}" if done.returncode else ""
    return done.stdout.rstrip() + failure


def block(name: str, arguments: list[str], folders: dict[str, str]) -> str:
    """A command with what it prints, and where and when it did."""
    said = " ".join(["python -m bench", name, *arguments])
    print(said, flush=True)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = f"{processor()}, {os.cpu_count()} cores{load}"
    text = measured(name, [folders.get(a, a) for a in arguments])
    when = f"{datetime.date.today().isoformat()}, {machine}, commit {build()}"
    return f"```text\n$ {said}\n{text}\n```\n\n*{when}*\n\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of benches; the others' blocks stay as they are")
    parser.add_argument("--datasets", help="a folder of learning data")
    parser.add_argument("--instances", help="a folder of models with an INDEX.tsv")
    given = parser.parse_args()
    folders = {k: v for k, v in {"DATASETS": given.datasets, "INSTANCES": given.instances}.items() if v}
    for found in list(BLOCK.finditer(PAGE.read_text())):
        head, name, arguments = found[1], found[2], found[3].split()
        missing = {"DATASETS", "INSTANCES"} & set(arguments) - set(folders)
        if missing or (given.only and name not in given.only):
            continue
        new = block(name, arguments, folders)
        text = PAGE.read_text()  # again: what was measured is kept if a later bench is stopped
        PAGE.write_text(BLOCK.sub(lambda m, head=head, new=new: m[1] + new + m[5] if m[1] == head else m[0], text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
