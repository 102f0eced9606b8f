"""What an experiment may say about a plain box: only what is true of everything."""

from __future__ import annotations

from mutiny.kit.language import Language

LANGUAGE = Language("plain", ())
