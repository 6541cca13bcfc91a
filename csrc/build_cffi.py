"""Writes the C source of the extension module fginfer._core from the public headers (called by CMake).

usage: build_cffi.py OUTPUT HEADER...
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


def main() -> None:
    output, *given = map(Path, sys.argv[1:])
    headers = in_order(given)
    ffi = FFI()
    for header in headers:
        lines = header.read_text().splitlines()
        # cffi knows the fixed-width types and wants no preprocessor lines; #define constants with a literal are kept.
        ffi.cdef("\n".join("" if line.startswith("#") else line for line in lines))
    ffi.set_source("fginfer._core", "".join(f'#include "{header.name}"\n' for header in headers))
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main()
