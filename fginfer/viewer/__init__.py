"""A model and its result as one page that can be looked through: self-contained, nothing is loaded from elsewhere."""

from fginfer.viewer.view import View, view

__all__ = ["View", "view"]
