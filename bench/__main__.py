"""Runs a bench by its name, or lists them all.

python -m bench --list              every bench with a line, by room
python -m bench NAME [ARGUMENTS]    one of them; `python -m bench NAME --help` says more
"""

from __future__ import annotations

import ast
import difflib
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOMS = ("", "map", "learn", "papers", "scale")


def benches() -> dict[str, tuple[str, str]]:
    """Name to module and first line of every file with a `main` that says how it is used."""
    found: dict[str, tuple[str, str]] = {}
    for room in ROOMS:
        for path in sorted((HERE / room).glob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if not path.name.startswith("_") and f"python -m bench {path.stem}" in text:
                module = ".".join(("bench", *([room] if room else []), path.stem))
                found[path.stem] = (module, " ".join(text.split("\n\n")[0].split()))
    return found


def main(arguments: list[str]) -> int:
    known = benches()
    if arguments == ["--list"]:
        for room in ROOMS:
            rows = [(name, line) for name, (module, line) in known.items() if module.split(".")[1:-1] == room.split()]
            print(f"{'bench' if not room else f'bench/{room}'}", *(f"  {n:24} {line}" for n, line in rows), sep="\n")
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        return 0
    # `python -m` puts this folder first, where fginfer has no C core: the installed package comes before its sources.
    sys.path.append(sys.path.pop(0))
    name = arguments[0]
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        print(f"there is no bench {name!r}{f'; did you mean {close[0]}?' if close else ''}", file=sys.stderr)
        return 2
    sys.argv = [name, *arguments[1:]]
    runpy.run_module(known[name][0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
