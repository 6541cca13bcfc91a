"""The report: one HTML page with tables and charts, nothing loaded from elsewhere."""

from __future__ import annotations

from math import inf, isfinite
from pathlib import Path

from fginfer import __version__
from fginfer.compare.peers import PEERS
from fginfer.compare.runs import HIT, Comparison, Run
from fginfer.compare.svg import COLOURS, Line, bars, chart, span
from fginfer.html import safe
from fginfer.result import relative_gap

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: #1c1c1c; background: #fff;
       max-width: 1080px; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.note { color: #555; margin: .3rem 0 1rem; max-width: 48rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .88rem; }
th, td { text-align: right; padding: .28rem .55rem; border-bottom: 1px solid #e3e3e3; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #999; }
td.best { font-weight: 650; } td.miss { color: #a33; }
.scroll { overflow-x: auto; } .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .6rem 0; }
.legend i { display: inline-block; width: 1.6em; height: 3px; vertical-align: middle; margin-right: .4em; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: .6rem 1.4rem; }
.chart { width: 100%; height: auto; } .chart text { font-family: inherit; fill: #333; }
.chart .title { font-size: 13px; font-weight: 600; } .chart .tick, .chart .label { font-size: 10.5px; }
.chart .grid { stroke: #e6e6e6; } .chart .none { fill: #888; font-size: 12px; }
section { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } .charts { grid-template-columns: 1fr 1fr; }
               h2 { break-after: avoid; } .scroll { overflow: visible; } }
"""


def short_names(files: list[str]) -> dict[str, str]:
    """File names without folders, with the folder where two would be the same."""
    names = [Path(f).name for f in files]
    return {f: n if names.count(n) == 1 else f"{Path(f).parent.name}/{n}" for f, n in zip(files, names, strict=True)}


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None or not isfinite(value) else format(value, form)


def _miss(run: Run, best: float | None) -> float | None:
    if best is None or run.score is None:
        return None
    return relative_gap(run.score, best, run.unit)


def _instance_table(data: Comparison, file: str) -> str:
    best = data.best_score(file)
    rows = []
    for method in data.methods:
        run = data.worst(file, method)
        miss = _miss(run, best)
        found = miss is not None and miss <= HIT
        to_best = run.seconds_to(best) if best is not None else inf
        mark = "best" if found else "miss"
        rows.append(
            f"<tr><td>{safe(method)}</td><td class={mark}>{_cell(run.score, '.6f')}</td>"
            f"<td>{_cell(run.bound, '.6f')}</td><td>{_cell(run.gap, '.1e')}</td><td>{_cell(miss, '.1e')}</td>"
            f"<td>{_cell(to_best, '.3f')}</td><td>{_cell(run.seconds, '.3f')}</td><td>{_cell(run.peak_mb, '.0f')}</td>"
            f"<td>{safe(run.ended)}</td></tr>"
        )
    heads = ("method", "score", "bound", "gap", "below best", "s to best", "s in all", "MB", "status")
    head = "".join(f"<th>{h}</th>" for h in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _curves(data: Comparison, file: str) -> str:
    """Score and bound against time; distance of the score from the best found against time."""
    best = data.best_score(file)
    limit = data.settings.get("time_limit", 1.0)
    score_lines, gap_lines, values, times = [], [], [], []
    for style, method in enumerate(data.methods):
        run = data.worst(file, method)
        trace = list(run.trace) or ([(run.seconds, run.score, run.bound)] if run.seconds is not None else [])
        if not trace:
            continue
        end = (max(run.seconds or 0.0, trace[-1][0]), run.score, run.bound)
        steps = [(max(t, 1e-4), s, b) for t, s, b in [*trace, end]]
        scores = [(t, s) for t, s, _ in steps if s is not None]
        bounds = [(t, b) for t, _, b in steps if b is not None]
        times += [t for t, _, _ in steps]
        # The first, poor values would squeeze the rest: show what was known after a twentieth of the events.
        values += [s for _, s in scores[len(scores) // 20 :]] + [b for _, b in bounds[len(bounds) // 4 :]]
        score_lines += [Line(f"{method}: score", scores, style), Line(f"{method}: bound", bounds, style, faint=True)]
        if best is not None:
            below = [(t, max(relative_gap(s, best, run.unit) or 0.0, 1e-9)) for t, s in scores]
            gap_lines.append(Line(method, below, style))
    x = span([*times, limit], logarithmic=True)
    y_gap = span([g for line in gap_lines for _, g in line.points], logarithmic=True)
    first = chart("score (solid) and bound (dashed)", score_lines, x, span(values), "seconds", "score")
    second = chart("relative distance from the best score found", gap_lines, x, y_gap, "seconds", "distance")
    return f'<div class="charts">{first}{second}</div>'


def performance_profile(data: Comparison) -> list[Line]:
    """For each method: the fraction of instances solved within a factor of the fastest, over that factor."""
    ratios: dict[str, list[float]] = {m: [] for m in data.methods}
    for file in data.files:
        best = data.best_score(file)
        if best is None:
            continue
        times = {m: max(data.worst(file, m).seconds_to(best), 1e-3) for m in data.methods}
        fastest = min(times.values())
        for method, t in times.items():
            ratios[method].append(t / fastest if fastest < inf else inf)
    lines = []
    for style, method in enumerate(data.methods):
        solved = sorted(r for r in ratios[method] if r < inf)
        n = max(1, len(ratios[method]))
        points = [(1.0, sum(r <= 1.0 for r in solved) / n), *((r, (k + 1) / n) for k, r in enumerate(solved))]
        lines.append(Line(method, points, style))
    return lines


def _overview(data: Comparison) -> str:
    profile = performance_profile(data)
    largest = max((a for line in profile for a, _ in line.points), default=1.0)
    profile = [Line(p.name, [*p.points, (largest * 1.1, p.points[-1][1])], p.style) for p in profile]
    axis = span([1.0, max(10.0, largest)], logarithmic=True)
    memory = []
    for style, method in enumerate(data.methods):
        used = [m for f in data.files for r in data.of(f, method) if (m := r.peak_mb) is not None]
        if used:
            memory.append((method, max(used), style))
    return (
        '<div class="charts">'
        + chart(
            "best score reached within a factor of the fastest",
            profile,
            axis,
            span([0.0, 1.0]),
            "time / fastest time",
            "fraction of instances",
        )
        + bars("peak memory of a process, largest instance", memory, "MB")
        + "</div>"
    )


def page(data: Comparison, title: str = "Comparison of MAP solvers") -> str:
    """The whole report."""
    names = short_names(data.files)
    s = data.settings
    legend = "".join(
        f'<span><i style="background:{COLOURS[k % len(COLOURS)]}"></i>{safe(m)}</span>'
        for k, m in enumerate(data.methods)
    )
    missing = "".join(f"<p class=note>Missing, not run: {safe(reason)}.</p>" for reason in data.missing.values())
    versions = s.get("versions", {})
    peers = "".join(
        f"<p class=note>{safe(name)} ({safe(versions.get(name, 'version unknown'))}): {safe(PEERS[name].what)}.</p>"
        for name in data.methods
        if name in PEERS
    )
    machine = f"<p class=note>Machine: {safe(s['machine'])}.</p>" if "machine" in s else ""
    sections = "".join(
        f"<section><h2>{safe(names[f])}</h2>{_instance_table(data, f)}{_curves(data, f)}</section>" for f in data.files
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{safe(title)}</title><style>{STYLE}</style></head><body>
<h1>{safe(title)}</h1>
<p class="note">fginfer {safe(__version__)} · {len(data.files)} instances · {s.get("time_limit", 0):g} s each ·
{s.get("threads", 1)} thread(s) · {s.get("repeat", 1)} run(s) of each, the worst is shown. Scores are maximised and were
recomputed from the tables for every solver. Times exclude reading the file; times within a factor of two are ties.</p>
{machine}{peers}{missing}<div class="legend">{legend}</div>
<section><h2>All instances</h2>{_overview(data)}</section>
{sections}
</body></html>
"""
