"""Writes the C source of the extension module fginfer._core from the public headers (called by CMake).

usage: build_cffi.py OUTPUT HEADER...
"""

import sys
from pathlib import Path

from cffi import FFI


def main() -> None:
    output, *headers = map(Path, sys.argv[1:])
    ffi = FFI()
    for header in headers:
        lines = header.read_text().splitlines()
        # cffi knows the fixed-width types and wants no preprocessor lines; #define constants with a literal are kept.
        ffi.cdef("\n".join("" if line.startswith("#") else line for line in lines))
    ffi.set_source("fginfer._core", "".join(f'#include "{header.name}"\n' for header in headers))
    ffi.emit_c_code(str(output))


if __name__ == "__main__":
    main()
