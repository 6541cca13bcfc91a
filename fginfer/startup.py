"""Ctrl-C and no memory while a command is still starting: one line and an exit code, not a traceback from the middle of
an import.

The package is imported before `main` can catch anything, so the package begins with this module, which acts when it is
imported. A program of somebody else's that imports fginfer keeps its handlers."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

# Exit codes of every command: done (solve: optimal or gap reached), stopped with a gap or by Ctrl-C, bad input or
# usage, something failed that should not, proven infeasible. Python itself ends a crash with 1, so a proof has a code
# that no crash, no signal and no shell produces.
DONE, STOPPED, BAD_INPUT, FAILED, INFEASIBLE = 0, 2, 3, 4, 20


def _leave(*_: Any) -> None:
    os.write(2, b"fginfer: interrupted\n")
    os._exit(STOPPED)


def _say(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    text = str(error)
    if issubclass(kind, MemoryError) or "failed to map segment" in text or "annot allocate memory" in text:
        os.write(2, b"fginfer: out of memory while it was starting\n")
        os._exit(FAILED)
    sys.__excepthook__(kind, error, trace)


def is_command() -> bool:
    """Whether this process is `fginfer ...` or `python -m fginfer`."""
    words = sys.orig_argv
    if "-m" in words:
        return words[words.index("-m") + 1 :][:1] == ["fginfer"]
    return os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] == "fginfer"


def ready() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt, and what was found is printed."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command():
    sys.excepthook = _say
if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)
