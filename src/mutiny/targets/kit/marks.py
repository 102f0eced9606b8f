"""Types for the texts of a target file: each says how the loader checks the text."""

from __future__ import annotations

from typing import Annotated

Words = Annotated[str, "words"]
"""A text whose `{placeholder}`s are replaced."""
Inside = Annotated[str, "words", "inside"]
"""The same, and a place in the box: Mutiny looks there, and faults damage it."""
Pattern = Annotated[str, "pattern"]
"""A regular expression."""
FilledPattern = Annotated[str, "words", "pattern"]
"""A regular expression in which placeholders are replaced."""
