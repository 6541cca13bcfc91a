"""The manual's tables of methods, options and counters, from the rows that the core has (fginfer_methods.def)."""

from __future__ import annotations

from pathlib import Path

from fginfer.core.rows import counter_rows, method_rows, option_rows


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def methods() -> str:
    """A row a method: what it is and when to use it, those for a baseline last."""
    rows = sorted(method_rows(), key=lambda row: row.use == "a baseline for a paper")
    lines = ["| you have | use | what it is |", "|---|---|---|"]
    return "\n".join([*lines, *(_cells(row.use, f"`{row.name}`", row.text) for row in rows)])


def options() -> str:
    """A row an option, with the methods that read it."""
    lines = ["| method | option | default | may be | meaning |", "|---|---|---|---|---|"]
    for row in option_rows():
        lines.append(_cells(_names(row.methods), f"`{row.name}`", f"`{row.default!r}`", row.values, row.text))
    return "\n".join(lines)


def counters() -> str:
    """A row a number in Result.statistics, with the methods that count it."""
    lines = ["| entry | methods | counts |", "|---|---|---|"]
    for row in counter_rows():
        lines.append(_cells(f"`{row.name}`", _names(row.methods) or "all", row.text))
    return "\n".join(lines)


TABLES = {"methods_list.md": methods, "options_list.md": options, "statistics_list.md": counters}


def write(folder: Path) -> None:
    """The tables as files that the pages of the folder include."""
    for name, table in TABLES.items():
        (folder / name).write_text(table() + "\n")
