"""The worker of a board without a model: what it makes of refusals that end by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny.doubles.boards.worker import LATER, Worker

BOARD = """\
echo "$1" >> asked
case $(grep -c complete asked) in
1|2) echo '{"ok": false, "error": "ERROR"}';;
*) echo '{"ok": true}';;
esac
"""


@pytest.mark.parametrize("error", [*LATER, "not_owner"])
def test_it_asks_again_when_it_only_was_not_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """Seed 5200027: whoever was told that it asks too often kept its task for ever."""
    monkeypatch.chdir(tmp_path)
    Path("board").write_text(BOARD.replace("ERROR", error))
    command = {"argv": ["sh", "board", "complete"], "optional": {}, "tool": "", "arguments": {}}
    config = {
        "worker": "w",
        "behaviour": "healthy",
        "commands": {"complete": command},
        "values": {},
        "environment": {},
        "limit_s": 10.0,
        "beat_s": 1.0,
        "history": "history",
    }
    Worker(config)._handle("t1", None)
    told = [json.loads(line) for line in Path("history").read_text().splitlines()]
    assert [one["answer"]["ok"] for one in told if "answer" in one][-1] is (error in LATER)
