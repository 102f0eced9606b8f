"""The network protocol: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json

from tinybase.engine import Database

__all__ = ["answer"]


def answer(database: Database, line: bytes) -> bytes:
    """What is said to one request: `{"sql": [...]}`."""
    try:
        asked = json.loads(line)
        texts = asked["sql"]
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise ValueError("sql is a list of texts")
        said = {"ok": True, "rows": database.run(*texts)}
    except (ValueError, KeyError, TypeError) as error:
        said = {"ok": False, "error": str(error)}
    return json.dumps(said).encode() + b"\n"
