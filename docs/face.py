"""Draws docs/_static/face.png, the picture at the top of the README: `python docs/face.py`.

A photograph that scikit-learn ships, in sixteen shades of grey with noise, and the labeling that fginfer finds; beside
it how the score and the bound close in on each other.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

import fginfer


def main() -> None:
    shades = 16
    photo = load_sample_image("china.jpg").mean(axis=2)[40:340:2, 150:550:2] / 255
    noisy = np.clip(photo + np.random.default_rng(0).normal(scale=0.1, size=photo.shape), 0, 1)
    levels = np.linspace(0, 1, shades)
    unary = -40 * (noisy[..., None] - levels) ** 2
    graph = fginfer.FactorGraph.grid(photo.shape, unary, fginfer.AbsDiff(0.3, 5))
    result = fginfer.solve(graph, "trws", gap=1e-4, max_iterations=200)
    assert result.labels is not None

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.3), layout="constrained")
    for axes, picture, title in (
        (left, noisy, "a noisy photograph"),
        (middle, levels[result.labels.reshape(photo.shape)], f"{graph.n_variables:,} variables, {shades} labels"),
    ):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
        axes.set_title(title)
        axes.set_axis_off()
    points = [(1000 * p.seconds, p.score, p.bound) for p in result.trace if p.score is not None and p.bound is not None]
    steps = np.array(points, float)
    right.plot(steps[:, 0], steps[:, 2], color="#b3541e", label="bound: no labeling scores more")
    right.plot(steps[:, 0], steps[:, 1], color="#1e6fb3", label="score of the best labeling")
    right.fill_between(steps[:, 0], steps[:, 1], steps[:, 2], color="#999999", alpha=0.2)
    right.set_xlim(0, 0.7 * steps[-1, 0])
    low, high = np.quantile(steps[:, 1], 0.1), steps[:, 2].min()
    right.set_ylim(low - 0.3 * (high - low), high + 2.5 * (high - low))
    right.set_xlabel("milliseconds")
    right.set_yticks([])
    right.set_title(f"how far from optimal: {100 * (result.gap or 0):.2g} %")
    right.legend(frameon=False, loc="upper right")
    place = Path(__file__).parent / "_static" / "face.png"
    figure.savefig(place, dpi=80)
    Image.open(place).convert("RGB").quantize(64, method=Image.Quantize.MAXCOVERAGE).save(place, optimize=True)


if __name__ == "__main__":
    main()
