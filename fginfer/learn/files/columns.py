"""Columns of CoNLL files by number and, in CoNLL-U, by name."""

from __future__ import annotations

from fginfer.errors import SettingsError

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


def column(given: str | int, width: int, format: str) -> int:
    """A column by its number (from 0, or from -1 at the end) or, in CoNLL-U, by its name."""
    if format == "conllu" and isinstance(given, str) and given.upper() in CONLLU:
        return CONLLU.index(given.upper())
    try:
        number = int(given)
    except ValueError:
        number = width
    if not -width <= number < width:
        names = f", or one of {', '.join(CONLLU)}" if format == "conllu" else ""
        raise SettingsError(f"there is no column {given!r}: columns are numbers from 0 to {width - 1}{names}")
    return number % width
