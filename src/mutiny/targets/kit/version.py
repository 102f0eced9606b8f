"""Which program was tested: what it says of itself, else the hash of its file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from mutiny.box.box import Box
from mutiny.errors import MutinyError
from mutiny.kit.crash import without_escapes

LIMIT_S = 5.0
MOST = 100
LARGEST = 1 << 30
_NUMBER = re.compile(r"\d+(?:\.\d+)+|\b[0-9a-f]{7,40}\b")
_KNOWN: dict[tuple[str, int, int], str] = {}
"""A program is asked once, however often it is run."""


def program_version(box: Box, program: Path) -> str:
    """`longboat 0.1.0`, as `--version` says it inside the box, in a home of its own; else `sha256 ...`."""
    try:
        facts = program.stat()
    except OSError as error:
        return f"unknown ({error.strerror})"
    key = (str(program), facts.st_mtime_ns, facts.st_size)
    if key not in _KNOWN:
        _KNOWN[key] = _told(box, program) or _hashed(program, facts.st_size)
    return _KNOWN[key]


def _told(box: Box, program: Path) -> str:
    scratch = f"{box.inside_root}/tmp"
    try:
        answer = box.run(
            (str(program), "--version"), cwd=scratch, env={"HOME": scratch}, timeout_s=LIMIT_S
        )
    except (MutinyError, OSError):
        return ""
    lines = without_escapes(answer.stdout or answer.stderr).strip().splitlines()
    plain = "".join(char for char in (lines[0] if lines else "") if char.isprintable())
    good = answer.exit_code == 0 and len(lines) <= 5 and _NUMBER.search(plain)
    return plain.strip()[:MOST] if good else ""


def _hashed(program: Path, size: int) -> str:
    if size > LARGEST or not program.is_file():
        return "unknown"
    try:
        with program.open("rb") as file:
            return f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"
    except OSError as error:
        return f"unknown ({error.strerror})"
