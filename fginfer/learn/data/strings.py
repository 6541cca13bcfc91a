"""Lists of strings as numpy arrays, which give every string the room of the longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import DataError

# Bytes that are fine in any case, and bytes for each character that there is: four where all strings are equally long,
# a hundred in the corpora we know (CoNLL-2000: 40). One long word among many would ask for gigabytes.
FINE, PER_CHARACTER = 64 << 20, 1000


def string_array(strings: Sequence[str], what: str) -> NDArray[Any]:
    """The array; DataError where one string is so long that the others would take gigabytes for it."""
    longest, size = max(map(len, strings), default=0), 4.0 * len(strings)
    if size * longest > FINE and size * longest > PER_CHARACTER * sum(map(len, strings)):
        raise DataError(
            f"{what}: one of {len(strings)} strings has {longest} characters, and an array gives all of them as much "
            f"room, {size * longest / 1e9:.1f} GB"
        )
    return np.array(strings, dtype=str)
