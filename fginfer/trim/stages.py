"""What a layer does to its inputs before its weights: nothing (dense), or cutting images into patches (convolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fginfer.errors import SettingsError
from fginfer.options import is_number

Reals = NDArray[np.float64]
Image = tuple[int, int, int]  # height, width, channels


@dataclass(frozen=True)
class Convolution:
    """A layer of `channels` filters of `window` x `window` pixels, at every place where they fit."""

    channels: int
    window: int = 3


@dataclass(frozen=True)
class Stage:
    """The layer is `rows` x `columns` weights, applied to each of the `places` of a sample. Samples are flat."""

    rows: int
    columns: int
    places: int = 1
    image: Image | None = None  # the shape of the inputs; None: dense
    window: int = 0

    @property
    def outputs(self) -> int:
        return self.places * self.columns

    def unfold(self, inputs: Reals) -> Reals:
        """(samples * places, rows): what the weights are multiplied with."""
        if self.image is None:
            return inputs
        images = inputs.reshape(-1, *self.image)
        patches = sliding_window_view(images, (self.window, self.window), axis=(1, 2))  # n, y, x, channel, dy, dx
        return patches.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.rows)

    def fold(self, slopes: Reals) -> Reals:
        """Derivatives by the inputs, from those by the patches: every pixel is in several."""
        if self.image is None:
            return slopes
        height, width, channels = self.image
        down, right = height - self.window + 1, width - self.window + 1
        parts = slopes.reshape(-1, down, right, self.window, self.window, channels)
        out = np.zeros((len(parts), *self.image), slopes.dtype)
        for dy in range(self.window):
            for dx in range(self.window):
                out[:, dy : dy + down, dx : dx + right] += parts[:, :, :, dy, dx]
        return out.reshape(len(parts), -1)


def stages_of(sizes: Sequence[Any]) -> tuple[int, list[Stage]]:
    """(number of inputs, a stage a layer) of a network's sizes."""
    if not isinstance(sizes, (list, tuple)):
        raise SettingsError(f"sizes must be a list: inputs, layers ..., labels, not {sizes!r}")
    error = SettingsError(
        "sizes must be inputs (a number, or height, width, channels), layers (numbers of outputs, or Convolution) and "
        f"labels, all positive, not {list(sizes)}"
    )
    if len(sizes) < 2 or not _whole(sizes[-1]):
        raise error
    image: Image | None = None
    if isinstance(sizes[0], (tuple, list)):
        if len(sizes[0]) != 3 or not all(_whole(v) for v in sizes[0]):
            raise error
        image = tuple(sizes[0])
        count = int(np.prod(image))
    elif _whole(sizes[0]):
        count = int(sizes[0])
    else:
        raise error
    inputs, stages = count, []
    for size in sizes[1:]:
        if isinstance(size, Convolution):
            if image is None or not _whole(size.channels) or not _whole(size.window) or size.window > min(image[:2]):
                raise SettingsError(f"{size} has no image as large as its window before it")
            height, width = image[0] - size.window + 1, image[1] - size.window + 1
            rows = size.window**2 * image[2]
            stages.append(Stage(rows, size.channels, height * width, image, size.window))
            image = (height, width, size.channels)
        elif _whole(size):
            stages.append(Stage(count, int(size)))
            image = None
        else:
            raise error
        count = stages[-1].outputs
    return inputs, stages


def _whole(value: Any) -> bool:
    return is_number(value, whole=True) and int(value) >= 1
