"""What the two formats of toulbar2 share: costs with an upper bound, and cost functions given by a formula."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# what toulbar2 means by a domain size below 0
NEGATIVE = "variable {} has a negative domain size: an interval without a list of its values, which is not supported"
# kinds of functions, and the number of their parameters
ARITHMETIC = {">=": 2, ">": 2, "<=": 2, "<": 2, "=": 2, "disj": 3, "sdisj": 6}


def arithmetic(kind: str, parameters: list[float], shape: tuple[int, int], top: float) -> NDArray[np.float64]:
    """The costs of a binary arithmetic function over labels x and y; `top` forbids."""
    x, y = np.arange(shape[0], dtype=float)[:, None], np.arange(shape[1], dtype=float)[None, :]
    if kind == "disj":
        cx, cy, weight = parameters
        return np.where((x >= y + cy) | (y >= x + cx), 0.0, weight)
    if kind == "sdisj":
        cx, cy, x_max, y_max, wx, wy = parameters
        inside = (x < x_max) & (y < y_max)
        fine = (x <= x_max) & (y <= y_max) & (~inside | (x >= y + cy) | (y >= x + cx))
        return np.where(fine, np.where(x == x_max, wx, 0.0) + np.where(y == y_max, wy, 0.0), top)
    constant, delta = parameters
    violation = {
        ">=": y + constant - x,
        ">": y + 1 + constant - x,
        "<=": x - constant - y,
        "<": x - constant + 1 - y,
        "=": np.abs(y + constant - x),
    }[kind]
    return np.where(violation <= delta, np.maximum(violation, 0.0), top)
