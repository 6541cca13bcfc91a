"""How large numbers may be: a feature times a weight, and every sum of such products, stays in the range of doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e150  # a product of two such numbers is 1e300, and sums of a hundred million products are finite


def are_sound(values: NDArray[Any]) -> bool:
    """Whether all are numbers of at most LARGEST. NaN is none."""
    return values.size == 0 or bool(values.min() >= -LARGEST and values.max() <= LARGEST)


def unsound(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which are not."""
    return np.asarray(~(np.abs(values) <= LARGEST))


def complaint(values: NDArray[Any]) -> str:
    """What is wrong with values that are not all sound, for an error."""
    return f"numbers above {LARGEST:g}; scale them" if np.isfinite(values).all() else "NaN or infinity"
