"""The run directory: its layout, and the only place where a run is written down.

    chaos_runs/run_20250112_143052/       latest -> run_...
      plan.json          before the first operation: seed, options, versions, argv, box
      operations.jsonl   one line an operation, flushed before the next one starts
      state_snapshots/   target_logs/   daemon.log   tmux_captures/   box/
      summary.json       error_report.md   minimal_replay.json

A full disk or a missing permission becomes one `StoreError` that names the file; what was written
stays readable.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mutiny.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mutiny.kit.contract import Keepable

FORMAT: Final = 1
ROOM_BYTES = 256 * 1024
LINED_LEVELS = 2
NAME_LIMIT = 80


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into one clear line."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {error.filename or path}: {error.strerror or error}"
        ) from error


class RunDirectory:
    """Paths and writers of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal_path = path / "operations.jsonl"
        self.summary_path = path / "summary.json"
        self.report_path = path / "error_report.md"
        self.replay_path = path / "minimal_replay.json"
        self.plan_path = path / "plan.json"
        self.box_path = path / "box"

    @classmethod
    def create(cls, root: Path, *, latest: bool = True) -> RunDirectory:
        """A new directory with a name of its own, and `latest` pointing to it."""
        name = time.strftime("run_%Y%m%d_%H%M%S")
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
            for attempt in range(10_000):
                path = root / (name if attempt == 0 else f"{name}_{attempt}")
                try:
                    path.mkdir()
                    break
                except FileExistsError:
                    continue
            else:
                raise StoreError(f"cannot find a free name below {root}")
        made = cls(path)
        if latest:
            made.make_latest()
        return made

    def make_latest(self) -> None:
        """Let `latest` point to this run."""
        with storing(self.path.parent):
            _point(self.path.parent / "latest", self.path.name)

    def write_json(self, path: Path, value: object) -> None:
        """Write a JSON document so that a reader sees all of it or nothing."""
        self.write_text(path, _laid_out(value) + "\n")

    def write_text(self, path: Path, text: str) -> None:
        """Write a text file so that a reader sees all of it or nothing."""
        temporary = path.with_name(f".{path.name}.tmp")
        with storing(path):
            try:
                if not path.parent.is_dir():
                    path.parent.mkdir(parents=True, exist_ok=True)
                # Half a character of a target's text becomes its escape, which JSON reads again.
                temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise

    def add_to_plan(self, facts: Mapping[str, object]) -> None:
        """Add what became known only once the box stood."""
        import json

        plan = (
            json.loads(self.plan_path.read_text(encoding="utf-8"))
            if self.plan_path.exists()
            else {}
        )
        self.write_json(self.plan_path, {**plan, **facts})

    def keep_copies(self, sources: Mapping[str, Keepable]) -> None:
        """Copy files or directories into the run directory; what does not exist is left out."""
        for name, source in sources.items():
            left_out = source.copy_to(self.path, name)
            if left_out:
                self.write_text(self.path / f"{name}.left_out.txt", "\n".join(left_out) + "\n")

    def write_captures(self, panes: Mapping[str, str]) -> None:
        """What was on the screens. The names are the target's: they become names of files here."""
        for session, text in panes.items():
            self.write_text(self.path / "tmux_captures" / f"{file_name(session)}.txt", text)

    def require_room(self) -> None:
        """On a full disk the target fails for want of room, and nothing that it does proves
        anything.
        """
        import shutil

        with storing(self.path):
            free = shutil.disk_usage(self.path).free
        if free < ROOM_BYTES:
            raise StoreError(f"cannot write {self.path}: No space left on device")

    def discard_box(self) -> None:
        """Throw the box's files away: nothing went wrong in it."""
        _remove(self.box_path)

    def discard(self) -> None:
        """Throw the whole run away."""
        _remove(self.path)


def file_name(text: str) -> str:
    """A name that somebody else has chosen, as the name of a file: in one directory, short and visible.

    Two names never become one: what was changed gets a mark of its own.
    """
    import re
    from hashlib import sha256

    plain = re.sub(r"[^A-Za-z0-9._@+-]", "_", text)[:NAME_LIMIT]
    if plain == text and plain and not plain.startswith((".", "-")):
        return plain
    mark = sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]
    return f"{plain.lstrip('.-') or 'unnamed'}~{mark}"


def _laid_out(value: object, depth: int = 0) -> str:
    """JSON for people: a line for each field and, where a field holds several things, for each of them."""
    import json  # not before a box stands, which is what a short run waits for

    inner = "  " * (depth + 1)
    if depth < LINED_LEVELS and isinstance(value, dict) and value:
        parts = [
            f"{json.dumps(str(key))}: {_laid_out(one, depth + 1)}" for key, one in value.items()
        ]
        opening, closing = "{", "}"
    elif depth < LINED_LEVELS and isinstance(value, list | tuple) and value:
        parts = [_laid_out(one, depth + 1) for one in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=False)
    lines = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{lines}\n{inner[2:]}{closing}"


def _remove(path: Path) -> None:
    """Take a tree away, as far as it lets itself be taken.

    First its name: somebody beside us may take the name as soon as it is free, and must not lose what is
    then behind it.
    """
    gone = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        path.rename(gone)
    except OSError:  # not there, or not ours to rename
        gone = path
    with suppress(RecursionError):
        _remove_quickly(str(gone))
    if gone.is_dir():  # something in it is stubborn: a mode, or more levels than a path may have
        from mutiny.system.files import BoxPath
        from mutiny.system.trees import remove

        with suppress(OSError):
            remove(BoxPath(gone.parent, gone.name))


def _remove_quickly(path: str) -> None:
    with suppress(OSError):
        with os.scandir(path) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    _remove_quickly(entry.path)
                else:
                    os.unlink(entry.path)  # noqa: PTH108
        os.rmdir(path)  # noqa: PTH106


def _point(link: Path, target: str) -> None:
    """Make `latest` point to a run, in one step."""
    temporary = link.with_name(f".latest.{os.urandom(4).hex()}")
    temporary.symlink_to(target)
    temporary.replace(link)
