"""The page: its parts put together. The data go in as JSON, the script draws them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from fginfer.html import safe

# Nothing can be loaded from elsewhere, whatever a name in a model says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(data: dict[str, Any], reload: bool = False) -> str:
    """One HTML file; `reload`: it loads itself again every second."""
    room = files("fginfer.viewer")
    # In a script only "</" and "<!--" mean anything; < as an escape means the same to JSON.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    body = room.joinpath("body.html").read_text("utf-8").replace("@title@", safe(data["title"]))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{safe(data['title'])} - fginfer</title><style>{room.joinpath('page.css').read_text('utf-8')}</style>"
        f'</head><body data-reload="{int(reload)}">{body}'
        f'<script type="application/json" id="data">{text}</script>'
        f"<script>{room.joinpath('page.js').read_text('utf-8')}</script></body></html>\n"
    )
