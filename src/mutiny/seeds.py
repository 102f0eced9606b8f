"""One seed, many independent random streams, each with a name.

A named stream keeps the choices of one part unchanged when another part starts to draw more
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


def stream(seed: int, name: str) -> random.Random:
    """A generator that depends on the seed and the name only."""
    import hashlib  # not every run chooses
    import random

    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def short_tag(seed: int) -> str:
    """Four characters that mark all tokens of a run."""
    import hashlib

    return hashlib.sha256(f"{seed}/token".encode()).hexdigest()[:4]
