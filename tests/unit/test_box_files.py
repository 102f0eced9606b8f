"""The opener: whatever a target puts there, nothing outside is read, written, waited for."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mutiny.engine.rundir import file_name
from mutiny.kit.views import WorktreeView
from mutiny.model.result import OperationResult
from mutiny.system import beneath, trees
from mutiny.system.files import BoxPath, UnsafeFile
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets.board.observer import BoardObserver
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.registry import find_spec
from mutiny.targets.workers.observer import Observer

SECRET = b"somebody else's"
NAMES = ("a", "b", "c")


def sparse(at: Path) -> None:
    """A file without end, almost."""
    at.touch()
    os.truncate(at, 3 << 30)


def outside_of(place: Path) -> Path:
    outside = place / "outside"
    for name in ("a", "b/a", "b/c/a"):
        path = outside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SECRET)
    return outside


def tree_hash(directory: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        found = path.lstat()
        total.update(f"{path.name} {found.st_mode:o} {found.st_mtime_ns}\n".encode())
        total.update(path.read_bytes() if stat.S_ISREG(found.st_mode) else b"")
    return total.hexdigest()


def grow(directory: Path, chance: random.Random, outside: Path, depth: int = 3) -> None:
    """A random tree of everything that a target can make."""
    for name in NAMES:
        path = directory / name
        kind = chance.choice(("nothing", "file", "folder", "folder", "link", "pipe", "sparse"))
        if kind == "file":
            path.write_bytes(b"own")
        elif kind == "folder" and depth:
            path.mkdir()
            grow(path, chance, outside, depth - 1)
        elif kind == "link":
            within = ("a", "../b", "..", ".", "../../..", "/dev/zero", "/proc/self/root", "/")
            to = chance.choice((*within, str(outside), str(outside / "a"), str(outside / "b")))
            path.symlink_to(to)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "sparse":
            path.touch()
            os.truncate(path, 3 << 30)


Deed = Callable[[BoxPath], object]

READING: dict[str, Deed] = {
    "read": lambda at: at.read_bytes(1000),
    "end": lambda at: at.read_end(1000),
    "from": lambda at: at.read_from(1, 1000),
    "said": lambda at: at.read_said()[:1000].encode(),
    "names": lambda at: at.names(),
    "files": lambda at: list(at.files()),
    "stat": lambda at: at.stat(),
    "words": lambda at: last_words(at)[:1000].encode(),
}
WRITING: dict[str, Deed] = {
    "replace": lambda at: at.replace_bytes(b"new"),
    "create": lambda at: at.create(b"new"),
    "overwrite": lambda at: at.overwrite(b"new"),
    "append": lambda at: at.append_text("new"),
    "chmod": lambda at: at.chmod(0o700),
    "unlink": lambda at: at.unlink(missing_ok=True),
    "mkdir": lambda at: at.mkdir(parents=True, exist_ok=True),
    "remove": lambda at: trees.remove(at),
    "empty": lambda at: trees.empty(at),
    "copy": lambda at: trees.copy(at, at.parent / "copy", with_links=True, most=trees.Most(1000)),
}


@pytest.mark.parametrize("seed", range(60))
def test_nothing_outside_is_ever_touched_or_told(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    outside, box = outside_of(tmp_path), tmp_path / "box"
    box.mkdir()
    grow(box, chance, outside)
    before = tree_hash(outside)
    for _ in range(80):
        at = BoxPath(box, *(chance.choice(NAMES) for _ in range(chance.randint(1, 4))))
        deeds = {**READING, **WRITING}
        name = chance.choice(sorted(deeds))
        try:
            told = deeds[name](at)
        except OSError:
            continue
        if isinstance(told, bytes):
            assert SECRET not in told, (name, at)
            assert len(told) <= 1000
    left_out = Keepsake(BoxPath(tmp_path, "box")).copy_to(tmp_path, "kept")
    assert all(isinstance(text, str) for text in left_out)
    for path in (tmp_path / "kept").rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or SECRET not in path.read_bytes()[:1000]
    trees.remove(BoxPath(tmp_path, "box"))
    assert not box.exists()
    assert tree_hash(outside) == before


@pytest.mark.parametrize("seed", range(30))
def test_step_by_step_answers_as_the_kernel_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    outside, box = outside_of(tmp_path), tmp_path / "box"
    box.mkdir()
    grow(box, chance, outside)
    root = os.open(box, os.O_PATH)
    try:
        for _ in range(60):
            names = tuple(chance.choice(NAMES) for _ in range(chance.randint(1, 4)))
            found: list[int | None] = []
            for at_once in (True, False):
                try:
                    held = beneath.open_beneath(root, names, os.O_PATH, at_once=at_once)
                except OSError:
                    found.append(None)
                    continue
                found.append(os.fstat(held).st_ino)
                os.close(held)
            assert found[0] == found[1], names
    finally:
        os.close(root)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\0b"])
def test_names_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises((OSError, ValueError)):
        BoxPath(tmp_path, name).read_bytes()


def test_a_way_back_counts_names_and_never_leads_out(tmp_path: Path) -> None:
    box = BoxPath(tmp_path)
    assert box / "a/b/../c" == BoxPath(tmp_path, "a", "c")
    with pytest.raises(UnsafeFile, match="out of the box"):
        _ = box / "a/../../b"


def test_it_is_no_path_that_open_would_take(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(TypeError):
        open(BoxPath(tmp_path, "a"))  # type: ignore[call-overload]  # noqa: SIM115


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda at: at.symlink_to("/etc/passwd"), "is a link"),
        (os.mkfifo, "is a pipe"),
        (sparse, "too large"),
    ],
    ids=["link", "pipe", "sparse"],
)
def test_what_is_not_touched_is_named(
    tmp_path: Path, make: Callable[[Path], object], told: str
) -> None:
    make(tmp_path / "state.json")
    with pytest.raises(UnsafeFile, match=f"state.json {told}|state.json is {told}"):
        BoxPath(tmp_path, "state.json").read_bytes()


def test_a_file_with_two_names_is_not_changed_in_place(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(SECRET)
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "a").hardlink_to(tmp_path / "outside")
    at = BoxPath(tmp_path / "box", "a")
    with pytest.raises(UnsafeFile, match="other names"):
        at.overwrite(b"new")
    with pytest.raises(UnsafeFile, match="other names"):
        at.append_text("new")
    at.replace_bytes(b"new")
    assert (tmp_path / "outside").read_bytes() == SECRET


def test_a_tree_of_any_depth_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not below `tmp_path`: if this is killed, pytest could not take such a tree away, and would fail later.
    top = Path(tempfile.mkdtemp(prefix="mutiny-deep-"))
    monkeypatch.chdir(top)
    for _ in range(3000):
        os.mkdir("d")  # noqa: PTH102 - a path to it would be too long
        os.chdir("d")
    trees.remove(BoxPath(top, "d"))
    assert list(top.iterdir()) == []
    top.rmdir()


def test_names_that_others_have_chosen_become_names_of_files() -> None:
    wild = [
        "../../x",
        "/etc/x",
        "a/b",
        "",
        ".",
        "..",
        "-rf",
        "a\nb",
        "\x1b[2J",
        "é" * 300,
        "\ud800",
        "~",
    ]
    flat = [file_name(text) for text in wild]
    assert len(set(flat)) == len(wild)
    for name in flat:
        assert name.isprintable()
        assert "/" not in name
        assert 0 < len(name) < 100
        assert not name.startswith((".", "-"))
    assert file_name("longboat-alpha") == "longboat-alpha"


@pytest.mark.parametrize(
    "make",
    [
        lambda at: at.symlink_to("/etc/passwd"),
        os.mkfifo,
        sparse,
    ],
    ids=["link", "pipe", "sparse"],
)
def test_a_board_that_cannot_be_looked_at_is_not_accused(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    spec, _ = find_spec("longboat-board")
    assert isinstance(spec, BoardSpec)
    make(tmp_path / "board.json")

    class Live:
        def ask(self, name: str) -> OperationResult:
            return OperationResult()

        def look_by(self, argv: Sequence[str]) -> OperationResult:
            return OperationResult()

        def filled(self, text: str) -> str:
            return text

        def limit(self, given_s: float) -> float:
            return given_s

        def outside(self, inside: str) -> BoxPath:
            return BoxPath(tmp_path, "board.json")

    reading = BoardObserver(spec, Live()).read()
    assert reading.error is None
    assert reading.tasks is None
    assert "board.json is" in (reading.trouble or "")


def test_a_worktree_that_a_damaged_state_puts_nowhere_is_not_there() -> None:
    """A relative name is another matter: the target file has to say what it is relative to."""

    def refuse(path: str) -> BoxPath:
        raise ValueError(f"{path} is not a path of the box")

    observer = object.__new__(Observer)
    observer._outside = refuse
    assert observer._tree_at("/box?home/worktrees/beta") == WorktreeView(exists=False)
    assert observer._tree_at("") == WorktreeView(exists=False)
    with pytest.raises(ValueError, match="not a path of the box"):
        observer._tree_at("worktrees/beta")
