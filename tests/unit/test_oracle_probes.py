"""What the oracle reads: state files of all kinds, git's plain files, and the doubles' record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.workers.observation import TaskView
from mutiny.doubles.install import Earlier, Received
from mutiny.kit.views import WorktreeView
from mutiny.probes import doubles, git
from mutiny.system.files import BoxPath
from mutiny.targets.workers.state_file import StateReading, StateWords, TaskWords, read_state

WORDS = StateWords(
    "data.workers",
    "data.daemon_running",
    {
        "status": "state",
        "branch": "branch",
        "worktree": "path",
        "session": "session",
        "prompt": "prompt",
        "pending_prompt": "",
        "commit_sha": "sha",
        "error_reason": "why",
    },
    {"in-progress": "working"},
)
ALPHA = {"state": "in-progress", "branch": "b", "path": "/w", "session": "s", "prompt": "p"}


def read(tmp_path: Path, content: object) -> StateReading:
    path = tmp_path / "state.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_state(BoxPath(tmp_path, "state.json"), WORDS)


def state(workers: object, flag: object = True) -> dict[str, object]:
    return {"data": {"workers": workers, "daemon_running": flag}}


# --- the state file -------------------------------------------------------------------------------


def test_a_state_in_the_contracts_words(tmp_path: Path) -> None:
    found = read(tmp_path, state({"alpha": {**ALPHA, "sha": "abc", "why": "no"}}))
    assert (found.exists, found.error, found.daemon_flag) == (True, None, True)
    worker = found.workers["alpha"]
    assert (worker.name, worker.status, worker.branch, worker.worktree) == (
        *("alpha", "working", "b"),
        "/w",
    )
    assert (worker.session, worker.prompt, worker.pending_prompt) == ("s", "p", "")
    assert (worker.commit_sha, worker.error_reason) == ("abc", "no")


def test_workers_may_be_a_list(tmp_path: Path) -> None:
    found = read(tmp_path, state([{"name": "alpha", **ALPHA}, {"name": "beta", "state": "idle"}]))
    assert {name: view.status for name, view in found.workers.items()} == {
        "alpha": "working",
        "beta": "idle",
    }


def test_empty_fields_are_none(tmp_path: Path) -> None:
    found = read(tmp_path, state({"alpha": {"state": "idle", "sha": None, "prompt": None}}))
    worker = found.workers["alpha"]
    assert (worker.commit_sha, worker.error_reason, worker.prompt) == (None, None, "")


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert read_state(BoxPath(tmp_path, "nowhere.json"), WORDS) == StateReading()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "not valid JSON"),
        (b'{"data": ', "not valid JSON"),
        (b"\x00\xff{{{", "decode"),
        ("[" * 100_000, "not valid JSON"),
        ("1" * 5000, ""),
        ("7", "wrong kind"),
        ("[]", "wrong kind"),
        ("null", "wrong kind"),
        ({}, "data"),
        ({"data": {}}, "workers"),
        ({"data": {"workers": {}}}, "daemon_running"),
        (state("alpha"), "wrong kind"),
        (state(5), "wrong kind"),
        (state(None), "wrong kind"),
        (state([{"state": "idle"}]), "name"),
        (state([{"name": None, "state": "idle"}]), "wrong kind"),
        (state({"alpha": "idle"}), "wrong kind"),
        (state({"alpha": {}}), "state"),
        (state({"alpha": {"state": "dancing"}}), "unknown status 'dancing'"),
        (state({"alpha": {"state": None}}), "unknown status '"),
        (state({}, "yes"), "daemon_running"),
        (state({}, 1), "daemon_running"),
    ],
)
def test_whatever_is_wrong_becomes_an_error_and_never_an_exception(
    tmp_path: Path, content: object, word: str
) -> None:
    found = read(tmp_path, content)
    assert found.exists
    assert found.error is not None
    assert word in found.error
    assert found.workers == {}


def test_a_flag_that_is_not_there_yet_is_unknown(tmp_path: Path) -> None:
    assert read(tmp_path, state({}, None)).daemon_flag is None


def test_a_directory_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.json").mkdir()
    found = read_state(BoxPath(tmp_path, "state.json"), WORDS)
    assert found.error is not None


# --- git ------------------------------------------------------------------------------------------

SHA, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A worktree of a repository, as git lays it out, without git."""
    common = tmp_path / "repo" / ".git"
    own = common / "worktrees" / "alpha"
    own.mkdir(parents=True)
    (common / "refs" / "heads" / "longboat").mkdir(parents=True)
    (common / "refs" / "heads" / "longboat" / "alpha").write_text(SHA + "\n")
    (own / "HEAD").write_text("ref: refs/heads/longboat/alpha\n")
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: /box{own}\n")
    return tmp_path


def look(repository: Path) -> object:
    here = BoxPath(repository)
    return git.worktree(here / "tree", lambda text: here / text.removeprefix(f"/box{repository}"))


def test_a_worktree_on_its_branch(repository: Path) -> None:
    found = look(repository)
    assert found == WorktreeView(True, "longboat/alpha", SHA, False, None)


def test_a_branch_that_is_packed(repository: Path) -> None:
    common = repository / "repo" / ".git"
    (common / "refs" / "heads" / "longboat" / "alpha").unlink()
    (common / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{OTHER} refs/heads/longboat/alphabet\n{SHA} refs/heads/longboat/alpha\n"
    )
    assert look(repository) == WorktreeView(True, "longboat/alpha", SHA, False, None)


def test_a_branch_that_is_gone(repository: Path) -> None:
    (repository / "repo" / ".git" / "refs" / "heads" / "longboat" / "alpha").unlink()
    assert look(repository) == WorktreeView(True, "longboat/alpha", None, False, None)


@pytest.mark.parametrize("name", ["rebase-merge", "rebase-apply"])
def test_a_rebase_under_way(repository: Path, name: str) -> None:
    own = repository / "repo" / ".git" / "worktrees" / "alpha"
    (own / name).mkdir()
    (own / "HEAD").write_text(OTHER + "\n")
    assert look(repository) == WorktreeView(True, None, OTHER, True, None)


@pytest.mark.parametrize("gone", ["tree", "tree/.git", "repo/.git/worktrees/alpha/HEAD"])
def test_a_worktree_that_is_not_there(repository: Path, gone: str) -> None:
    path = repository / gone
    if path.is_dir():
        (path / ".git").unlink()
        path.rmdir()
    else:
        path.unlink()
    assert look(repository) == WorktreeView(False)


def test_the_fingerprint_changes_with_every_ref(repository: Path) -> None:
    common = repository / "repo" / ".git"
    seen = {git.fingerprint(BoxPath(common))}
    (common / "refs" / "heads" / "longboat" / "alpha").write_text(OTHER)
    seen.add(git.fingerprint(BoxPath(common)))
    (common / "refs" / "heads" / "new").write_text(SHA)
    seen.add(git.fingerprint(BoxPath(common)))
    (common / "packed-refs").write_text("x")
    seen.add(git.fingerprint(BoxPath(common)))
    (common / "refs" / "heads" / "new").unlink()
    seen.add(git.fingerprint(BoxPath(common)))
    assert len(seen) == 5
    assert git.fingerprint(BoxPath(common)) in seen


def test_commits_with_their_tokens() -> None:
    output = (
        f"\x1e{SHA}\x1fCreate a.txt\n\nMutiny-Token: MT-7f3a-1\nMutiny-Token: MT-7f3a-2\n"
        f"\n\x1e{OTHER}\x1fnothing here MT- MT-x\n"
    )
    first, second = git.parse_log(output, frozenset({OTHER}))
    assert (first.sha, first.tokens, first.on_default) == (SHA, ("MT-7f3a-1", "MT-7f3a-2"), False)
    assert (second.sha, second.tokens, second.on_default) == (OTHER, (), True)
    assert git.parse_log("", frozenset()) == ()


def test_the_lines_of_a_commit_count_for_it_where_messages_do_not_tell_everything() -> None:
    output = f"\x1e{SHA}\x1fUncommitted work\n\ndiff --git a/a b/a\n+MT-0-1\n-MT-0-2\n"
    (plain,) = git.parse_log(output, frozenset(), squashes=False)
    assert (plain.tokens, plain.in_files) == ((), ("MT-0-1",))
    (squashed,) = git.parse_log(output, frozenset())
    assert (squashed.tokens, squashed.in_files) == (("MT-0-1",), ("MT-0-1",))


def test_a_token_that_is_named_twice_counts_once() -> None:
    (found,) = git.parse_log(f"\x1e{SHA}\x1fMT-0-1 and MT-0-1", frozenset())
    assert found.tokens == ("MT-0-1",)


@pytest.mark.parametrize(("name", "text"), [("HEAD", "0" * 40), ("HEAD", ""), ("commondir", "")])
def test_a_half_made_worktree_is_none(repository: Path, name: str, text: str) -> None:
    (repository / "repo" / ".git" / "worktrees" / "alpha" / name).write_text(text)
    assert look(repository) == WorktreeView(False)


def test_a_half_made_worktree_does_not_hide_the_commits(tmp_path: Path) -> None:
    def ask(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    ask("git", "init", "-q", str(tmp_path))
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    ask("git", "-C", str(tmp_path), *author, "commit", "-q", "--allow-empty", "-m", "MT-0-1")
    own = tmp_path / ".git" / "worktrees" / "alpha"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("0" * 40 + "\n")
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{tmp_path}/alpha/.git\n")
    assert ask(*git.log_argv(str(tmp_path))).returncode != 0
    (found,) = git.parse_log(ask(*git.log_argv(str(tmp_path), heads=False)).stdout, frozenset())
    assert found.tokens == ("MT-0-1",)


# --- the doubles' record --------------------------------------------------------------------------


def record(event: str, pid: int = 1, **fields: Any) -> Received:
    return Received(event, pid=pid, start=7, worker="alpha", session="s", **fields)


def prompt(token: str, pid: int = 1, *earlier: Earlier) -> Received:
    return record("prompt", pid, token=token, tokens=(token,), kind="task", earlier=earlier)


def test_what_became_of_each_prompt() -> None:
    found = doubles.receipts(
        [
            record("start"),
            prompt("MT-0-1"),
            record("commit"),
            record("turn_end"),
            prompt("MT-0-2"),
            record("commit", 2),
            prompt("MT-0-3", 2),
        ]
    )
    assert [(item.token, item.committed, item.finished) for item in found] == [
        ("MT-0-1", True, True),
        ("MT-0-2", False, False),
        ("MT-0-3", False, False),
    ]


@pytest.mark.parametrize(
    ("earlier", "alive", "same"),
    [
        ((), False, False),
        ((Earlier(1, 7, False, False),), False, False),
        ((Earlier(1, 7, True, False),), True, False),
        ((Earlier(1, 7, True, True),), True, True),
        ((Earlier(1, 7, False, False), Earlier(2, 7, True, False)), True, False),
    ],
)
def test_who_had_the_prompt_before(earlier: tuple[Earlier, ...], alive: bool, same: bool) -> None:
    (found,) = doubles.receipts([prompt("MT-0-1", 3, *earlier)])
    assert (found.earlier_alive, found.same_agent) == (alive, same)


def test_turns_are_counted_by_worker(tmp_path: Path) -> None:
    path = tmp_path / "received.jsonl"
    log = doubles.ReceivedLog(BoxPath(tmp_path, "received.jsonl"))
    assert log.refresh() == []
    for event, worker in (("start", "alpha"), ("prompt", "alpha"), ("prompt", "beta")):
        line = {"time": 1.0, "event": event, "pid": 1, "start": 7, "worker": worker, "session": "s"}
        with path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        log.refresh()
    assert len(log.records) == 3
    assert (log.turns("alpha"), log.turns("beta"), log.turns("gamma")) == (1, 1, 0)


def test_agents_by_identity() -> None:
    records = [
        record("start", 1),
        record("start", 2),
        record("start", 3),
        prompt("MT-0-1", 1),
        prompt("MT-0-2", 2),
        record("turn_end", 2),
        record("exit", 3),
    ]
    found = doubles.agents(records, frozenset({(1, 7), (2, 8), (3, 7)}))
    assert [(item.identity, item.alive, item.busy, item.left) for item in found] == [
        ((1, 7), True, True, False),
        ((2, 7), False, False, False),  # the pid lives again as somebody else
        ((3, 7), True, False, True),
    ]


TASKS = replace(
    WORDS, tasks=TaskWords("tasks", "prompt", "state", "commit", {"active": "open", "in": "merged"})
)


def test_the_targets_own_account_of_tasks(tmp_path: Path) -> None:
    done = {"prompt": "Create a.txt", "state": "in", "commit": "c1"}
    begun = {"prompt": "Create b.txt", "state": "active", "commit": None}
    path = BoxPath(tmp_path, "state.json")
    (tmp_path / "state.json").write_text(
        json.dumps({**state({}), "tasks": {"t1": done, "t2": begun}})
    )
    assert read_state(path, TASKS).tasks == (
        TaskView("t1", "merged", "Create a.txt", "c1"),
        TaskView("t2", "open", "Create b.txt"),
    )
    assert read_state(path, WORDS).tasks is None
    for wrong in ({"t1": {**done, "state": "lost"}}, {"t1": {"state": "in"}}, "none"):
        (tmp_path / "state.json").write_text(json.dumps({**state({}), "tasks": wrong}))
        assert read_state(path, TASKS).error is not None
