"""A trained model that cannot be written where it was to go is written elsewhere: hours may have gone into it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fginfer.errors import FginferError, UnwritableError


def save_or_rescue(save: Callable[[str], object], path: str) -> bool:
    """Whether it is in its place; if not, stderr says why, and where it is."""
    try:
        save(path)
        return True
    except UnwritableError as error:
        said = f"fginfer: {error}"
        try:
            elsewhere = str(Path(tempfile.mkdtemp(prefix="fginfer-")) / Path(path).name)
            save(elsewhere)
            said += f"; the model is in {elsewhere}"
        except (FginferError, OSError) as other:
            said += f"; nor elsewhere ({other})"
    print(said, file=sys.stderr)
    return False
