"""What lies in a box belongs to the target: Mutiny's own hands stay inside, whatever they find there."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from hostile import SECRET, attack, step
from mutiny.box.startup import create_box
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from sampling import sampled

RESET, INIT, DOWN = step("Reset"), step("Init"), step("Down")
FAIL = step("Review", worker="alpha")
"""It destroys the state: a bug, so that evidence is collected."""

KNOWN = {"chaos_runs", "outside", "program", "mine.toml", "scenario.json"}
HOME_BY_LINK = 'mv "$BOX/home" "$BOX/old"; ln -s "$OUTSIDE" "$BOX/home"'
STATE_BY_LINK = 'ln -sf "$OUTSIDE/state.json" "$mine/state.json"'

# --- links: nothing is written, deleted or read through them ----------------------------------------

FAULTS = {
    "fill": (step("FillDisk", lasting=True), step("Heal")),
    "fill-inodes": (step("FillDisk", what="inodes", lasting=True), step("Heal")),
    "fill-home": (step("FillDisk", place="home", lasting=True), step("Heal")),
    "read-only": (step("ReadOnlyDisk", lasting=True), step("Heal")),
    "forbid": (step("Forbid", lasting=True), step("Heal")),
    "lock": (step("HoldLock", place="state", lasting=True), step("Heal")),
    "full-calls": (step("FillDisk", during=DOWN),),
    "slow-calls": (step("SlowFiles", during=DOWN),),
    "power": (step("PowerLossAt", operation=DOWN, call=0),),
    "crash": (step("CrashAt", operation=DOWN, call=0),),
    "trace": (step("Trace", operation=DOWN, keep="synced"),),
    "clock": (step("SkewClock", offset_s=60, lasting=True), step("Heal")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_home_that_is_a_link_is_left_alone(tmp_path: Path, fault: str) -> None:
    for name, operations in (
        ("before", (RESET, *FAULTS[fault], INIT)),
        ("after", (RESET, INIT, *FAULTS[fault], INIT)),
    ):
        (tmp_path / name).mkdir()
        attack(tmp_path / name, HOME_BY_LINK, *operations).require_harmless()


DAMAGES = ("garbage", "truncate", "delete", "empty", "append", "flip", "stale")


@pytest.mark.parametrize("how", DAMAGES)
def test_a_linked_state_file_is_not_damaged(tmp_path: Path, how: str) -> None:
    done = attack(tmp_path, STATE_BY_LINK, RESET, INIT, step("DamageFile", how=how))
    done.require_harmless()
    assert done.verdict is Verdict.INCONCLUSIVE
    assert "is a link" in "".join(done.doubts)


@pytest.mark.parametrize("how", ["garbage", "truncate", "delete"])
def test_a_state_file_that_becomes_a_link_is_not_damaged(tmp_path: Path, how: str) -> None:
    done = attack(
        tmp_path, "", RESET, INIT, DOWN, step("CorruptState", how=how), later=STATE_BY_LINK
    )
    done.require_harmless()
    assert done.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "trick",
    [
        'ln -sf "$OUTSIDE/README.md" "$BOX/source/README.md"',
        'mv "$BOX/source" "$BOX/old"; ln -s "$OUTSIDE" "$BOX/source"',
    ],
    ids=["file", "directory"],
)
def test_the_users_edit_goes_through_no_link(tmp_path: Path, trick: str) -> None:
    done = attack(tmp_path, trick, RESET, INIT, step("DirtySource"))
    done.require_harmless()
    assert done.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("name", ["tmp", "doubles", "bin", "home", "source"])
def test_a_box_does_not_go_on_from_a_link(tmp_path: Path, name: str) -> None:
    """After a crash the walls go up again around the same files: a link would let the outside in."""
    swap = f'mv "$BOX/{name}" "$BOX/old-{name}"; ln -s "$OUTSIDE" "$BOX/{name}"'
    crash = step("KillDuring", operation=DOWN, after_ms=1, whole=True)
    done = attack(
        tmp_path, swap, RESET, INIT, crash, step("Behave", worker="a", turns=["obey"]), INIT
    )
    done.require_harmless()
    assert done.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("place", ["daemon.log", "state.json", "more"])
def test_linked_files_are_not_copied_into_the_report(tmp_path: Path, place: str) -> None:
    trick = f'ln -sf "$OUTSIDE/state.json" "$mine/{place}"; ln -s "$OUTSIDE" "$mine/folder"'
    attack(tmp_path, trick, RESET, INIT, FAIL).require_harmless()


@pytest.mark.parametrize(
    "name", ["../../../../evil", "/tmp/evil", "a/../../evil", "-x", "e\\033[2Jl"]
)
def test_a_session_named_like_a_path_stays_in_the_run(tmp_path: Path, name: str) -> None:
    trick = f"tmux new-session -d -s \"$(printf '%b' '{name}')\" sleep 60"
    done = attack(tmp_path, trick, RESET, INIT, FAIL)
    done.require_harmless()
    assert done.verdict is Verdict.BUG
    names = [name for name in done.kept() if name.startswith("tmux_captures/")]
    assert names
    assert all(name.count("/") == 1 and name.isprintable() for name in names)
    assert {path.name for path in tmp_path.iterdir()} == KNOWN


# --- a board is looked at and damaged by the same hands ------------------------------------------------

BOARD_FAULTS = {
    "fill": (step("FillDisk", lasting=True), step("Heal")),
    "read-only": (step("ReadOnlyDisk", lasting=True), step("Heal")),
    "forbid": (step("Forbid", lasting=True), step("Heal")),
    "lock": (step("HoldBoardLock", seconds=0.2),),
    "corrupt": (step("CorruptBoard", how="truncate"),),
    "damage": (step("DamageFile", how="delete"),),
    "power": (step("PowerLossAt", operation=step("List"), call=0),),
    "trace": (step("Trace", operation=step("List"), keep="synced"),),
}
LINKS = {
    "home": HOME_BY_LINK,
    "state": STATE_BY_LINK,
    "lock": 'ln -sf "$OUTSIDE/state.json" "$mine/lock"',
    "directory": 'mv "$mine" "$BOX/old"; ln -s "$OUTSIDE/mine" "$mine"',
}


@pytest.mark.parametrize("case", sampled((f"{f}-{k}" for f in BOARD_FAULTS for k in LINKS), 5))
def test_a_hostile_board_leads_nowhere(tmp_path: Path, case: str) -> None:
    fault, _, link = case.rpartition("-")
    operations = (RESET, INIT, *BOARD_FAULTS[fault], step("List"))
    done = attack(tmp_path, LINKS[link], *operations, contract="board")
    done.require_harmless()
    assert done.steps > len((RESET, INIT)), "the fault was tried"


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse"])
def test_a_board_that_never_ends_is_not_read(tmp_path: Path, kind: str) -> None:
    trick = f'rm "$mine/state.json"; {KINDS[kind].format("$mine/state.json")}'
    operations = (RESET, INIT, step("List"), step("CorruptBoard"), step("List"))
    done = attack(tmp_path, trick, *operations, contract="board")
    done.require_harmless()
    assert done.steps > len((RESET, INIT, "List"))
    assert done.verdict is not Verdict.SUCCESS


# --- pipes, devices and files without end: no wait, no flood ------------------------------------------

PLACES = {
    "state": "$mine/state.json",
    "log": "$mine/daemon.log",
    "record": "$BOX/doubles/received.jsonl",
    "head": "$BOX/source/.git/HEAD",
    "ref": "$BOX/source/.git/refs/heads/other",
    "packed": "$BOX/source/.git/packed-refs",
}
KINDS = {
    "fifo": 'mkfifo "{}"',
    "zero": 'ln -s /dev/zero "{}"',
    "sparse": 'truncate -s 3G "{}"',
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_what_never_ends_is_not_read(tmp_path: Path, place: str, kind: str) -> None:
    path = PLACES[place]
    trick = f'rm -f "{path}"; {KINDS[kind].format(path)}'
    done = attack(tmp_path, trick, RESET, INIT, FAIL)
    done.require_harmless()
    if place == "log":
        assert done.verdict is Verdict.BUG, "the bug is found in spite of its log"
        assert (done.run / "error_report.md").exists()
    else:
        assert done.verdict is Verdict.INCONCLUSIVE
        told = "".join(done.doubts)
        assert {"fifo": "is a pipe", "zero": "is a link", "sparse": "too large"}[kind] in told


@pytest.mark.parametrize("how", ["garbage", "delete", "append"])
def test_a_pipe_is_not_damaged(tmp_path: Path, how: str) -> None:
    later = 'rm "$mine/state.json"; mkfifo "$mine/state.json"'
    done = attack(tmp_path, "", RESET, INIT, DOWN, step("DamageFile", how=how), later=later)
    done.require_harmless()
    assert done.verdict is Verdict.INCONCLUSIVE


# --- content that means nothing ----------------------------------------------------------------------

STATE = r"""printf '{"workers": {"a%s": {"status": "%s", "worktree": "%s"}}}' """
TO_STATE, RECORD = '> "$mine/state.json"', '> "$BOX/doubles/received.jsonl"'
DEEP = r"head -c 200000 /dev/zero | tr '\0' '['"
ODD = r"""printf '[]\n7\n"x"\n{"time":1,"event":[],"pid":{}}\n{"event":"prompt","pid":[1],"tokens":7}\n' """
CONTENTS = {
    "surrogate": f"{STATE} '\\ud800' idle /box {TO_STATE}",
    "surrogate-field": f"{STATE} '' '\\udfff' /box {TO_STATE}",
    "null-byte": f"{STATE} '' idle '/box/\\u0000' {TO_STATE}",
    "up-and-out": f"{STATE} '' idle /box/../../etc {TO_STATE}",
    "elsewhere": f"{STATE} '' idle /etc {TO_STATE}",
    "newline": f"{STATE} '\\n- [x](y)' idle /box {TO_STATE}",
    "deep": f"{DEEP} {TO_STATE}",
    "deep-record": f"(echo; {DEEP}; echo) {RECORD}",
    "no-event": f"""echo '{{"time":1}}' {RECORD}""",
    "odd-record": f"{ODD} {RECORD}",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_nonsense_is_no_traceback(tmp_path: Path, content: str) -> None:
    attack(tmp_path, CONTENTS[content], RESET, INIT, step("Status"), RESET, INIT).require_harmless()


def test_a_tree_that_is_too_deep_to_be_copied_is_taken_away(tmp_path: Path) -> None:
    dig = """python3 -c 'import os
for _ in range(1500): os.mkdir("d"); os.chdir("d")'"""
    done = attack(tmp_path, f'cd "$mine"; {dig}', RESET, INIT, FAIL)
    try:
        done.require_harmless()
        assert done.verdict is Verdict.BUG
        assert "too deep" in done.kept()["target_logs/mine.left_out.txt"].decode()
    finally:
        RunDirectory(done.run).discard()
    assert not done.run.exists()


def test_no_socket_of_the_user_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by its name in the home, nor by an abstract one."""
    here = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory(dir=here, prefix=".home-") as home:
        monkeypatch.setenv("HOME", home)
        monkeypatch.chdir(home)  # names of sockets are short
        abstract = f"\0mutiny-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as other:
            named.bind("agent.sock")
            other.bind(abstract)
            for listener in (named, other):
                listener.listen(1)
                listener.setblocking(False)
            with tempfile.TemporaryDirectory() as place, create_box(Path(place, "box")) as box:
                python = str(Path(sys.executable).resolve())
                argv = [python, "-IS", "-c", CALLER, f"{home}/agent.sock", abstract[1:]]
                said = box.run(argv, timeout_s=30)
            assert said.stdout.split() == ["refused", "refused"], said
            for listener in (named, other):
                with pytest.raises(BlockingIOError):
                    listener.accept()


CALLER = """
import socket, sys
for name in (sys.argv[1], chr(0) + sys.argv[2]):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("reached")
    except OSError:
        print("refused")
"""


def test_what_a_target_prints_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    live = r"![x](http://evil.example)<b>|`\n```\n# no\342\200\256"
    words = rf"printf '\033[2J\033]0;title\007\r{live}'"
    trick = f'{words} > "$mine/daemon.log"; {words} >&2; exit 2'
    done = attack(tmp_path, trick, RESET, INIT)
    done.require_harmless()
    assert done.verdict is Verdict.BUG
    report = done.kept()["error_report.md"].decode()
    for text in (done.said, report):
        assert all(char.isprintable() or char in "\n\t" for char in text)
        assert "\\x1b[2J" in text
    outside = "".join(report.split("````")[::2])
    assert "](http" not in outside
    assert "<b>" not in outside.replace("\\<b>", "")


def test_the_secret_would_be_found(tmp_path: Path) -> None:
    """The suite can fail: a state of the box's own with the secret in it is in the report."""
    trick = f"""echo '{{"workers": {{}}, "x": "{SECRET}"}}' > "$mine/daemon.log" """
    done = attack(tmp_path, trick, RESET, INIT, FAIL)
    assert any(SECRET.encode() in data for data in done.kept().values())
