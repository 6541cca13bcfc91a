"""What other packages add by entry points: formats, commands and methods.

A package names them in its pyproject.toml:

    [project.entry-points."fginfer.formats"]
    toy = "toy_package:FORMAT"          # a fginfer.formats.Format
    [project.entry-points."fginfer.commands"]
    count = "toy_package:register"      # register(subparsers), as the modules of fginfer.commands have it
    [project.entry-points."fginfer.methods"]
    first = "toy_package:FirstEngine"   # made with (graph, settings); see fginfer.engine.Engine

The metadata of all installed packages is read when somebody asks for a name that fginfer itself does not have, or for a
list of all names: whoever uses our own names does not wait for it. Our names come before those of others.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

KINDS = ("formats", "commands", "methods")


@cache
def added(kind: str) -> dict[str, Any]:
    """Name to object of what other packages add. What cannot be loaded is left out with a RuntimeWarning: a package of
    somebody else's must not take ours with it."""
    found: dict[str, Any] = {}
    for entry in sorted(entry_points(group=f"fginfer.{kind}"), key=lambda entry: (entry.name, entry.value)):
        try:
            thing = entry.load()
        except Exception as error:
            _leave_out(kind, entry, f"cannot be loaded: {error}")
            continue
        if not _fits(kind, thing):
            _leave_out(kind, entry, "is no fginfer.formats.Format" if kind == "formats" else "cannot be called")
        elif entry.name in found:
            _leave_out(kind, entry, "has the name of another one")
        else:
            found[entry.name] = thing
    return found


def _fits(kind: str, thing: Any) -> bool:
    if kind == "formats":
        return hasattr(thing, "extensions") and callable(getattr(thing, "read", None))
    return callable(thing)


def _leave_out(kind: str, entry: EntryPoint, why: str) -> None:
    package = entry.dist.name if entry.dist is not None else "a package"
    warnings.warn(f"{entry.name} of {package} ({entry.value}, fginfer.{kind}) {why}", RuntimeWarning, stacklevel=3)
