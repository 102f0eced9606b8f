"""Text inside markup. (`html` would load the names of two thousand characters for it.)"""

from __future__ import annotations

_MARKS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escape(text: str) -> str:
    """As `html.escape`."""
    return text.translate(_MARKS)
