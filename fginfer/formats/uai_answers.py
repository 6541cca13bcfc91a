"""UAI result files of sums: MAR (the marginals of all variables) and PR (log10 of the partition function)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.formats.streams import write_atomically


def mar_text(variables: Sequence[NDArray[np.float64]]) -> str:
    """`MAR`, then the number of variables and of each its label count and probabilities, on one line."""
    numbers = (f"{len(p)} {' '.join(f'{x:.12g}' for x in p)}" for p in variables)
    return "MAR\n" + " ".join([str(len(variables)), *numbers]) + "\n"


def pr_text(log_z: float) -> str:
    """`PR`, then log10 of Z."""
    return f"PR\n{log_z / log(10):.17g}\n"


def write_text(text: str, path: str | PathLike[str]) -> None:
    """Writes all of it or, where that fails, leaves what was there."""
    with write_atomically(Path(path)) as out:
        out.write(text.encode())
