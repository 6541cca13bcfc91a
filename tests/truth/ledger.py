"""What has run: how much the testers of this folder have tried, on which builds, and how much of it was false.

    TRUTH_LEDGER=tests/truth/ran.csv python tests/truth/differential.py ...      a tester adds what it has tried
    python tests/truth/ledger.py                                  writes the table of docs/how/checks.md from ran.csv
    python tests/truth/ledger.py note TESTER UNIT COUNT WRONG     adds a line for a tester that is no Python program

A line of ran.csv is a tester on a build (the day and the commit it was made from) and what it counts in; another run of
the same tester on the same build is added to it. Nothing is written where TRUTH_LEDGER is not set.
"""

from __future__ import annotations

import csv
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
RAN = HERE / "ran.csv"
PAGE = HERE.parents[1] / "docs" / "how" / "checks.md"
BEGIN, END = "<!-- written by tests/truth/ledger.py -->", "<!-- end -->"


class Line(NamedTuple):
    """A tester on a build."""

    day: str
    build: str
    tester: str
    unit: str
    count: int
    wrong: int


def build() -> str:
    """The commit that is tested: TRUTH_BUILD for a build that stands apart, else that of this folder ("+": changed)."""
    if os.environ.get("TRUTH_BUILD"):
        return os.environ["TRUTH_BUILD"]
    call = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude=*"]
    said = subprocess.run(call, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def lines_of(text: str) -> list[Line]:
    rows = csv.DictReader(text.splitlines())
    return [Line(r["day"], r["build"], r["tester"], r["unit"], int(r["count"]), int(r["wrong"])) for r in rows]


def with_line(lines: list[Line], new: Line) -> list[Line]:
    """The lines with one more, or with one that counts more."""
    for at, line in enumerate(lines):
        if line[:4] == new[:4]:
            more = line._replace(count=line.count + new.count, wrong=line.wrong + new.wrong)
            return [*lines[:at], more, *lines[at + 1 :]]
    return [*lines, new]


def note(tester: str, unit: str, count: int, wrong: int) -> None:
    """Adds what a tester has tried to the file that TRUTH_LEDGER names. Several testers may do so at a time."""
    name = os.environ.get("TRUTH_LEDGER")
    if not name or not count:
        return
    with open(name, "a+", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        lines = with_line(lines_of(file.read()), Line(time.strftime("%Y-%m-%d"), build(), tester, unit, count, wrong))
        file.seek(0)
        file.truncate()
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Line._fields)
        out.writerows(lines)


def table(lines: Iterable[Line]) -> str:
    """Markdown: a row for each tester, its counts over all builds and on the last one."""
    lines = list(lines)
    rows = ["| tester | tried in all | faults | builds | last build | tried on it |", "|---|---:|---:|---:|---|---:|"]
    for tester, unit in sorted({line[2:4] for line in lines}):
        own = [line for line in lines if line[2:4] == (tester, unit)]
        last = [line for line in own if line.build == own[-1].build]
        total, wrong = sum(line.count for line in own), sum(line.wrong for line in own)
        builds = len({line.build for line in own})
        at = f"{last[-1].build}, {last[-1].day}"
        tried = sum(line.count for line in last)
        rows.append(f"| `{tester}` | {total:,} {unit} | {wrong:,} | {builds} | {at} | {tried:,} |")
    return "\n".join(rows)


def page_with(page: str, made: str) -> str:
    """The page with this table between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"


def main() -> int:
    if sys.argv[1:2] == ["note"] and len(sys.argv) == 6:
        note(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    elif len(sys.argv) == 1:
        PAGE.write_text(page_with(PAGE.read_text(), table(lines_of(RAN.read_text()))))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
