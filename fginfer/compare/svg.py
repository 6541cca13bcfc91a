"""Small charts as SVG text: lines and steps over a linear or logarithmic axis, readable on screen and in print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from fginfer.html import safe

COLOURS = ("#0b6fb8", "#d1495b", "#2e8b57", "#8e5ea2", "#b8860b", "#20808d", "#6b6b6b", "#c2185b", "#5d4037", "#7cb342")
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 2")  # in case the page is printed in grey
WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 30, 42


@dataclass(frozen=True)
class Line:
    """One curve. `style` numbers colour and dash; `faint` curves (bounds) are drawn thinner."""

    name: str
    points: Sequence[tuple[float, float]]
    style: int
    faint: bool = False


@dataclass(frozen=True)
class Axis:
    """A range of data and how to place it."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end; clipped."""
        low, high, v = self.low, self.high, value
        if self.logarithmic:
            low, high, v = log10(low), log10(high), log10(max(value, self.low))
        return min(1.0, max(0.0, (v - low) / (high - low))) if high > low else 0.5

    def ticks(self) -> list[float]:
        if self.logarithmic:
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            every = max(1, len(powers) // 7)
            return [10.0**p for p in powers[::every] if self.low <= 10.0**p * 1.0001 and 10.0**p <= self.high * 1.0001]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10.0 ** floor(log10(span / 4))
        step *= next(m for m in (1, 2, 5, 10) if span / (m * step) <= 5)
        first = ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, floor(self.high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A short label for a tick."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        return f"1e{int(exponent)}" if mantissa == "1" else f"{mantissa}e{int(exponent)}"
    return f"{value:.6g}"


def span(values: Sequence[float], logarithmic: bool = False, pad: float = 0.04) -> Axis | None:
    """An axis that shows all finite values; None if there are none."""
    finite = [v for v in values if isfinite(v) and (v > 0 or not logarithmic)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    if logarithmic:
        return Axis(low / 1.15, high * 1.15, True)
    extra = pad * (high - low) or 0.5 * max(1.0, abs(high)) * 0.01
    return Axis(low - extra, high + extra)


def chart(title: str, lines: Sequence[Line], x: Axis | None, y: Axis | None, x_label: str, y_label: str) -> str:
    """A chart of step curves (what is known holds until it improves)."""
    head = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(title)}">'
        f'<text class="title" x="{LEFT}" y="17">{safe(title)}</text>'
    )
    if x is None or y is None:
        return head + f'<text class="none" x="{LEFT}" y="{HEIGHT // 2}">nothing to show</text></svg>'
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def px(value: float) -> float:
        return LEFT + inner_w * x.place(value)

    def py(value: float) -> float:
        return TOP + inner_h * (1 - y.place(value))

    parts = [head]
    for tick in x.ticks():
        parts.append(f'<line class="grid" x1="{px(tick):.1f}" x2="{px(tick):.1f}" y1="{TOP}" y2="{TOP + inner_h}"/>')
        parts.append(
            f'<text class="tick" x="{px(tick):.1f}" y="{TOP + inner_h + 14}" text-anchor="middle">{number(tick)}</text>'
        )
    for tick in y.ticks():
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + inner_w}" y1="{py(tick):.1f}" y2="{py(tick):.1f}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{py(tick) + 3.5:.1f}" text-anchor="end">{number(tick)}</text>'
        )
    parts.append(
        f'<text class="label" x="{LEFT + inner_w / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{safe(x_label)}</text>'
    )
    parts.append(
        f'<text class="label" transform="translate(13 {TOP + inner_h / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{safe(y_label)}</text>"
    )
    for line in lines:
        points = [(a, b) for a, b in line.points if isfinite(a) and isfinite(b)]
        if not points:
            continue
        path = f"M{px(points[0][0]):.1f} {py(points[0][1]):.1f}"
        path += "".join(f"H{px(a):.1f}V{py(b):.1f}" for a, b in points[1:])
        dash = DASHES[line.style // len(COLOURS) % len(DASHES)] if not line.faint else "3 3"
        parts.append(
            f'<path d="{path}" fill="none" stroke="{COLOURS[line.style % len(COLOURS)]}" '
            f'stroke-width="{1.2 if line.faint else 2}" stroke-dasharray="{dash}">'
            f"<title>{safe(line.name)}</title></path>"
        )
    parts.append("</svg>")
    return "".join(parts)


def bars(title: str, rows: Sequence[tuple[str, float, int]], unit: str) -> str:
    """Horizontal bars: name, value, style."""
    height = TOP + 24 * len(rows) + 8
    top = max((v for _, v, _ in rows), default=0.0) or 1.0
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{safe(title)}">'
        f'<text class="title" x="8" y="17">{safe(title)}</text>'
    ]
    for k, (name, value, style) in enumerate(rows):
        y, width = TOP + 24 * k, 250 * value / top
        parts.append(f'<text class="tick" x="100" y="{y + 12}" text-anchor="end">{safe(name)}</text>')
        parts.append(
            f'<rect x="106" y="{y + 2}" width="{width:.1f}" height="14" fill="{COLOURS[style % len(COLOURS)]}"/>'
        )
        parts.append(
            f'<text class="tick" x="{112 + width:.1f}" y="{y + 12}">{number(round(value, 1))} {safe(unit)}</text>'
        )
    return "".join(parts) + "</svg>"
