"""What a peer answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PeerAnswer:
    """What a peer found: labels (or None), a bound on the score (or None), the seconds it took, and how it ended."""

    labels: NDArray[np.int32] | None
    bound: float | None
    seconds: float
    status: str
