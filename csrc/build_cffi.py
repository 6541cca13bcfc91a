"""Writes the C source of the extension module fginfer._core from the public headers (called by CMake).

usage: build_cffi.py OUTPUT HEADER... TABLE...

A table (.def) has rows that a header includes between macros of its own (fginfer_methods.def).
"""

import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

from cffi import FFI


def in_order(headers: list[Path]) -> list[Path]:
    """Every header after those that it includes."""
    names = {header.name: header for header in headers}
    includes = {n: [i for i in re.findall(r'#include "(.+)"', h.read_text()) if i in names] for n, h in names.items()}
    return [names[name] for name in TopologicalSorter(includes).static_order()]


STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def rows(table: str) -> list[tuple[str, list[str]]]:
    """The macro and the arguments of each row of a .def file; a row begins in the first column."""
    strings: list[str] = []

    def hide(found: re.Match[str]) -> str:
        strings.append(found[0])
        return f"\0{len(strings) - 1}\0"

    hidden = STRING.sub(hide, COMMENT.sub("", table))
    found = re.findall(r"^(FGI_\w+)\(([^()]*)\)", hidden, re.M)
    shown = [[re.sub(r"\0(\d+)\0", lambda m: strings[int(m[1])], a).strip() for a in b.split(",")] for _, b in found]
    return [(name, arguments) for (name, _), arguments in zip(found, shown, strict=True)]


def expanded(text: str, tables: dict[str, str]) -> str:
    """A header without preprocessor lines; where it includes a table, its rows by the macros defined before."""
    macros: dict[str, tuple[list[str], str]] = {}
    out: list[str] = []
    for line in text.splitlines():
        define = re.match(r"#define (FGI_\w+)\(([^()]*)\) (.*)", line)
        include = re.match(r'#include "(\w+\.def)"', line)
        if define:
            macros[define[1]] = ([word.strip() for word in define[2].split(",")], define[3])
        elif include:
            for name, arguments in rows(tables[include[1]]):
                if name in macros:
                    parameters, body = macros[name]
                    values = dict(zip(parameters, arguments, strict=True))
                    out.append(re.sub(r"\w+", lambda m: values.get(m[0], m[0]), body).replace("##", ""))  # noqa: B023
            macros = {}
        out.append("" if line.startswith("#") else line)
    return "\n".join(out)


def main() -> None:
    output, *given = map(Path, sys.argv[1:])
    tables = {path.name: path.read_text() for path in given if path.suffix == ".def"}
    headers = in_order([path for path in given if path.suffix == ".h"])
    ffi = FFI()
    for header in headers:
        # cffi knows the fixed-width types and wants no preprocessor lines.
        ffi.cdef(expanded(header.read_text(), tables))
    ffi.set_source("fginfer._core", "".join(f'#include "{header.name}"\n' for header in headers))
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main()
