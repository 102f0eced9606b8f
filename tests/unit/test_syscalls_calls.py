"""Names that differ between runs, names of processes, and when two records are the same."""

from __future__ import annotations

import pytest

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call, difference, label_of, normalise


def call(index: int, name: str, *files: str, flags: int = 0, process: str = "git#1") -> Call:
    paths = tuple(normalise(file) for file in files)
    return Call(index, 7, process, name, paths, files, flags=flags)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/objects/5b/tmp_obj_0VyGCn", ".git/objects/<xx>/tmp_obj_<temp>"),
        (
            ".git/objects/5b/c1f8b7e7d1b7a5b0d4a2d8f5f1f0a1b2c3d4e5",
            ".git/objects/<xx>/<hex>",
        ),
        (".git/refs/heads/master.lock", ".git/refs/heads/master.lock"),
        ("state.json.20500", "state.json.<n>"),
        ("tmpab3_x9qz", "tmp<temp>"),
        (".stateab3_x9qz", ".state<temp>"),
        ("log.jsonl", "log.jsonl"),
        ("sessions/0f8fad5b-d9cb-469f-a165-70867728950e.jsonl", "sessions/<uuid>.jsonl"),
        ("worktrees/alpha/README.md", "worktrees/alpha/README.md"),
        ("spool/1736531.5-hook", "spool/<n>.5-hook"),
        ("face.txt", "face.txt"),
    ],
)
def test_unstable_parts_are_replaced(path: str, expected: str) -> None:
    assert normalise(path) == expected


def test_own_numbers_are_replaced_even_when_short() -> None:
    assert normalise("state.json.7", frozenset({"7", "20500"})) == "state.json.<n>"
    assert normalise("state.json.8", frozenset({"7"})) == "state.json.8"
    assert normalise("v7/state", frozenset({"7"})) == "v7/state"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["git", "commit", "-qm", "2"], "git commit"),
        (["/usr/bin/git", "-c", "core.editor=true", "rebase"], "git rebase"),
        (["git", "-C", "/box/source", "add", "."], "git add"),
        (["python3", "-IS", "/box/bin/longboat", "up"], "python3 longboat"),
        (["/usr/bin/python3.11", "-m", "pytest"], "python3.11 -m pytest"),
        (["sh", "-c", "echo 1"], "sh -c"),
        (["bash", "-lc", "echo 1"], "bash -c"),
        (["node", "x.js"], "node x.js"),
        (["-bash"], "bash"),
        (["true"], "true"),
        ([], "?"),
    ],
)
def test_processes_have_short_stable_names(argv: list[str], expected: str) -> None:
    assert label_of(argv) == expected


def writer(temporary: str, target: str = "/w/state.json") -> list[Call]:
    return [
        call(0, "openat", temporary, flags=tables.O_CREAT | tables.O_WRONLY),
        call(1, "write", temporary),
        call(2, "rename", temporary, target),
    ]


def test_sequences_are_the_same_up_to_names_that_they_make() -> None:
    assert difference(writer("/w/abcdefgh"), writer("/w/qwertzui")) is None


def test_a_new_name_must_always_mean_the_same_file() -> None:
    other = writer("/w/qwertzui")
    other[1] = call(1, "write", "/w/somethin")
    assert "call 1" in str(difference(writer("/w/abcdefgh"), other))


def test_an_old_name_must_be_the_same() -> None:
    left = [call(0, "unlink", "/w/a.json")]
    assert "call 0" in str(difference(left, [call(0, "unlink", "/w/b.json")]))


def test_length_and_kind_must_be_the_same() -> None:
    left = writer("/w/abcdefgh")
    assert difference(left, left[:2]) == "3 calls / 2 calls"
    other = [left[0], call(1, "fsync", "/w/abcdefgh"), left[2]]
    assert "call 1" in str(difference(left, other))
