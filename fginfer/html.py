"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from fginfer.printable import printable


def safe(text: object) -> str:
    """Text of a page: nothing in it is markup, and nothing invisible."""
    return escape(printable(text))


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """A heading and a row per entry."""
    body = "".join(f"<tr><td>{safe(k)}</td><td>{safe(v)}</td></tr>" for k, v in rows.items())
    return f"<table><thead><tr><th colspan='2'>{safe(title)}</th></tr></thead><tbody>{body}</tbody></table>"
