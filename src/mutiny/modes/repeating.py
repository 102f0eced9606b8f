"""The command that repeats a run, from its directory alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mutiny.errors import MutinyError
from mutiny.report.origin import replay_command
from mutiny.targets.registry import find_spec, spoken_again


def repeat_command(run: Path, plan: Mapping[str, Any], place: Path | None = None) -> str:
    """`mutiny replay ...` of the minimal replay, or of the whole run; `place`: where it will lie.

    Empty when the plan does not say enough.
    """
    file = str(plan.get("target_file") or "")
    if not file:  # a plain box: what was called is all that there is to repeat
        argv = plan.get("argv")
        given = [str(one) for one in argv[1:]] if isinstance(argv, list) else []
        return shlex.join(["mutiny", *given]) if given else ""
    name = "minimal_replay.json" if (run / "minimal_replay.json").is_file() else "operations.jsonl"
    program = str(plan.get("program") or "")
    try:
        options = spoken_again(file, find_spec(file)[0], Path(program))
    except MutinyError:  # it is not here any more
        options = ("--target", file, "--bin", program)
    if place is not None:
        return shlex.join(["mutiny", "replay", str(place / name), *options])
    return replay_command(run / name, options)
