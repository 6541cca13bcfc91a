"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """A heading and a row per entry."""
    body = "".join(f"<tr><td>{escape(str(k))}</td><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
    return f"<table><thead><tr><th colspan='2'>{escape(title)}</th></tr></thead><tbody>{body}</tbody></table>"
