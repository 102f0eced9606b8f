"""What the agent double reads out of a prompt, and the texts that it makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mutiny.doubles.agents import prompts
from mutiny.doubles.agents.behaviours import (
    BEHAVIOURS,
    UnknownBehaviour,
    behaviour_for,
    parse_behaviour,
)
from mutiny.doubles.agents.claude import parse_arguments
from mutiny.doubles.agents.prompts import requested_files
from mutiny.doubles.agents.shapes import FOLDERS, OLD_FILES, reshape
from mutiny.doubles.install import Earlier, Received, read_received, write_script
from mutiny.probes.git import parse_tree, shape_argv
from mutiny.system.files import BoxPath

LLMC_PREAMBLE = """\
You are working in: /box/llmc/.worktrees/alpha
Repository root: /box/llmc/.worktrees/alpha

Follow all conventions in AGENTS.md
Create a single commit with your changes
Do not push to remote
"""


@pytest.mark.parametrize(
    ("prompt", "files"),
    [
        # The prompts of the classic scenarios.
        ("Create a file named test.txt with content 'hello'", [("test.txt", "hello")]),
        ("Create test.txt with 'hello'", [("test.txt", "hello")]),
        ("Create test.txt with content 'hello'", [("test.txt", "hello")]),
        ("Please also create test2.txt", [("test2.txt", None)]),
        (
            'Create src/shared.rs with fn hello() { println!("alpha"); }',
            [("src/shared.rs", 'fn hello() { println!("alpha"); }')],
        ),
        ("Create test.txt", [("test.txt", None)]),
        ("Create alpha.txt", [("alpha.txt", None)]),
        ("Also add gamma.txt", [("gamma.txt", None)]),
        ("Add a header comment", []),
        ("Another task", []),
        ("test", []),
        # Several files, and the ways in which people join them.
        ("Create a.txt and b.txt.", [("a.txt", None), ("b.txt", None)]),
        ("Create a.txt, b.txt, and c/d.txt", [("a.txt", None), ("b.txt", None), ("c/d.txt", None)]),
        ("Create a.txt with 'x' and b.txt with 'y'", [("a.txt", "x"), ("b.txt", "y")]),
        ("Create a.py with x = 1.5. Then create b.py", [("a.py", "x = 1.5"), ("b.py", None)]),
        ("Create a.py with x = 1 and also create b.py", [("a.py", "x = 1"), ("b.py", None)]),
        ("Create a.txt with 'x'. Also add b.txt", [("a.txt", "x"), ("b.txt", None)]),
        ("Create a.txt with 'one'\nCreate a.txt with 'two'", [("a.txt", "two")]),
        # Content in other clothes.
        ("Create t.txt with content 'it's here'", [("t.txt", "it's here")]),
        ('Create t.txt with the text "two\nlines"', [("t.txt", "two\nlines")]),
        ("Create `t.py` with:\n```python\nx = 1\ny = 2\n```\nDone.", [("t.py", "x = 1\ny = 2")]),
        ("Create a new file called Makefile containing 'all:'", [("Makefile", "all:")]),
        ("Add .gitignore", [(".gitignore", None)]),
        ("Create a file named ünï.txt", [("ünï.txt", None)]),
        # Tokens are no content, wherever they stand; inside quotes the text is kept as it is.
        ("MT-7f3a-2: Create test.txt", [("test.txt", None)]),
        ("Create test.txt [MT-7f3a-2]", [("test.txt", None)]),
        ("Create a.rs with fn a() {} (token MT-7f3a-2)", [("a.rs", "fn a() {}")]),
        ("Create a.rs with fn a() {}. MT-7f3a-2", [("a.rs", "fn a() {}")]),
        ("Create a.txt with 'see MT-7f3a-2'", [("a.txt", "see MT-7f3a-2")]),
        # What must not become a file.
        (LLMC_PREAMBLE, []),
        ("Do not create test.txt", []),
        ("Don't create test.txt, create other.txt", [("other.txt", None)]),
        ("Create /etc/passwd", []),
        ("Create ../outside.txt and a/../../b.txt", []),
        ("Create .git/config", []),
        ("Add e.g. a comment", []),
        ("Create a test for main.py", []),
    ],
)
def test_files_that_a_prompt_asks_for(prompt: str, files: list[prompts.FileRequest]) -> None:
    assert requested_files(prompt) == files


def test_an_orchestrators_preamble_changes_nothing() -> None:
    prompt = f"{LLMC_PREAMBLE}\nCreate a file named test.txt with content 'hello' MT-7f3a-2"
    assert requested_files(prompt) == [("test.txt", "hello")]
    assert prompts.commit_message(prompt, ["MT-7f3a-2"]) == (
        "Create a file named test.txt with content 'hello'\n\nMutiny-Token: MT-7f3a-2\n"
    )


def test_every_prompt_of_the_seed_scenarios_is_a_task_with_its_token() -> None:
    assert prompts.find_tokens("MT-7f3a-2 and MT-0-11, again MT-7f3a-2; not xMT-1-1, MT-A-1") == [
        "MT-7f3a-2",
        "MT-0-11",
    ]
    assert prompts.kind_of("Add a header comment MT-7f3a-2", rebase_in_progress=False) == "task"
    assert prompts.kind_of("Create test.txt", rebase_in_progress=False) == "task"
    assert prompts.kind_of("hello there", rebase_in_progress=False) == "other"


@pytest.mark.parametrize(
    "prompt",
    [
        "REBASE CONFLICT DETECTED\n\nMaster has advanced. Original task: Create test.txt",
        "A rebase onto master has encountered conflicts.\n\nCreate test.txt MT-7f3a-2",
        "Please resolve the merge conflicts in src/shared.rs",
    ],
)
def test_conflict_prompts_are_known_by_their_text(prompt: str) -> None:
    assert prompts.kind_of(prompt, rebase_in_progress=False) == "conflict"


def test_any_prompt_during_a_rebase_is_about_the_conflict() -> None:
    assert prompts.kind_of("Create test.txt", rebase_in_progress=True) == "conflict"


class TestFileBody:
    """The last line of a file carries the token, and no trace of other work is destroyed."""

    def test_new_file(self) -> None:
        assert prompts.file_body(None, "hello", ["MT-1-1"]) == "hello\ntoken: MT-1-1\n"
        assert prompts.file_body(None, None, []) == ""

    def test_existing_file_keeps_the_tokens_of_earlier_work(self) -> None:
        first = prompts.file_body(None, "one", ["MT-1-1"])
        assert prompts.file_body(first, "two", ["MT-1-2"]) == (
            "two\ntoken: MT-1-1\ntoken: MT-1-2\n"
        )
        assert prompts.file_body(first, None, ["MT-1-2"]) == ("one\ntoken: MT-1-1\ntoken: MT-1-2\n")

    @pytest.mark.parametrize("content", [None, "x", "token: MT-1-1\nx\n", ""])
    def test_the_same_prompt_again_changes_nothing(self, content: str | None) -> None:
        once = prompts.file_body("old\n", content, ["MT-1-1"])
        assert prompts.file_body(once, content, ["MT-1-1"]) == once


def test_commit_message_of_a_prompt_without_token_has_no_trailer() -> None:
    assert prompts.commit_message("one two three four five six seven eight nine", []) == (
        "one two three four five six seven eight\n"
    )
    assert prompts.commit_message("MT-1-1", ["MT-1-1"]) == "Work\n\nMutiny-Token: MT-1-1\n"


@pytest.mark.parametrize(
    ("conflicted", "resolved"),
    [
        (b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> 12ab (x)\nd\n", b"a\nb\nc\nd\n"),
        (b"<<<<<<< HEAD\nb\n||||||| base\nold\n=======\nc\n>>>>>>> x\n", b"b\nc\n"),
        (b"<<<<<<< HEAD\r\nb\r\n=======\r\nc\r\n>>>>>>> x\r\n", b"b\r\nc\r\n"),
        (b"title\n=======\nno conflict \xff\n", b"title\n=======\nno conflict \xff\n"),
    ],
)
def test_resolving_keeps_both_sides(conflicted: bytes, resolved: bytes) -> None:
    assert prompts.keep_both_sides(conflicted) == resolved


class TestBehaviours:
    """One behaviour per turn; wrong names are refused where they are written."""

    def test_the_last_behaviour_repeats(self) -> None:
        script = {
            "version": 1,
            "default": ["hang"],
            "workers": {"alpha": ["slow:400", "obey"], "*": ["dirty"]},
        }
        turns = [behaviour_for(script, "alpha", turn) for turn in range(4)]
        assert turns == ["slow:400", "obey", "obey", "obey"]
        assert behaviour_for(script, "beta", 7) == "dirty"
        assert behaviour_for({**script, "workers": {}}, "beta", 0) == "hang"

    @pytest.mark.parametrize("name", ["dance", "slow", "slow:", "slow:-1", "obey:3", ""])
    def test_unknown_ones_are_refused_with_the_list_of_valid_ones(
        self, name: str, tmp_path: Path
    ) -> None:
        with pytest.raises(UnknownBehaviour, match=r"valid are: obey, slow:MS, hang") as caught:
            write_script(BoxPath(tmp_path), {"alpha": ["obey", name]})
        assert repr(name) in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_an_empty_list_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownBehaviour, match="empty"):
            write_script(BoxPath(tmp_path), {"alpha": []})

    def test_every_behaviour_is_described_by_a_sentence(self) -> None:
        assert parse_behaviour("slow:400") == ("slow", 400)
        for name, sentence in BEHAVIOURS.items():
            assert sentence[0].isupper(), name
            assert sentence.endswith("."), name

    def test_the_page_for_users_lists_them_all(self) -> None:
        page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
        for name, sentence in BEHAVIOURS.items():
            assert f"| `{name}` | {sentence} |" in page


class TestCommandLine:
    """Flags as the real agent takes them; unknown ones never eat the prompt."""

    def test_flags_of_orchestrators(self) -> None:
        line = (
            "--print --dangerously-skip-permissions --disallowedTools NotebookRead,Task "
            "--model haiku --add-dir /a /b -r 123 --output-format=json"
        )
        options = parse_arguments(line.split())
        assert options.print_mode
        assert (options.model, options.resume) == ("haiku", "123")
        assert options.output_format == "json"
        assert options.prompt is None

    @pytest.mark.parametrize(
        "line",
        [
            "--print do-it",
            "do-it --print",
            "-p --unknown do-it",
            "-p --unknown value do-it",
            "-p --unknown=value do-it",
            "-p --model haiku do-it --verbose",
            "-p -- do-it",
        ],
    )
    def test_the_prompt_is_found(self, line: str) -> None:
        assert parse_arguments(line.split()).prompt == "do-it"


class TestReadReceived:
    """The oracle's side of received.jsonl."""

    LINE = (
        b'{"time":1.5,"event":"prompt","pid":7,"start":70,"worker":"alpha","session":"s",'
        b'"turn":0,"tokens":["MT-1-1"],"token":"MT-1-1","kind":"task","new_in_future":1,'
        b'"earlier":[{"pid":5,"start":50,"alive":true,"same_agent":false}]}\n'
    )
    RECORD = Received(
        "prompt",
        time=1.5,
        pid=7,
        start=70,
        worker="alpha",
        session="s",
        turn=0,
        tokens=("MT-1-1",),
        token="MT-1-1",
        kind="task",
        earlier=(Earlier(5, 50, alive=True, same_agent=False),),
    )

    def test_a_half_last_line_waits_for_its_end(self, tmp_path: Path) -> None:
        path = tmp_path / "received.jsonl"
        assert read_received(BoxPath(path.parent, path.name), 0) == ([], 0)
        path.write_bytes(self.LINE + self.LINE[:40])
        assert read_received(BoxPath(path.parent, path.name), 0) == ([self.RECORD], len(self.LINE))
        path.write_bytes(self.LINE + self.LINE)
        assert read_received(BoxPath(path.parent, path.name), len(self.LINE)) == (
            [self.RECORD],
            2 * len(self.LINE),
        )

    def test_a_line_that_its_writer_did_not_finish_is_told_apart(self, tmp_path: Path) -> None:
        path = tmp_path / "received.jsonl"
        path.write_bytes(self.LINE[:40] + self.LINE)
        records, offset = read_received(BoxPath(path.parent, path.name), 0)
        assert [record.event for record in records] == ["torn", "prompt"]
        assert records[0].detail == self.LINE[:40].decode()
        assert records[1] == self.RECORD
        assert offset == 40 + len(self.LINE)


def test_a_tree_in_every_shape_is_told_as_git_tells_it(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.invalid")
    for name, text in OLD_FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run((*git, *words), check=True)
    removed, shape = reshape(str(tmp_path), "MT-0-1")
    subprocess.run((*git, "add", "--", *removed, *shape), check=True)
    subprocess.run((*git, "commit", "-q", "-m", "second"), check=True)
    argv = shape_argv(str(tmp_path), "main", FOLDERS)
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert parse_tree(told) == {f"{what} {path}" for path, what in shape.items()}
    assert removed == ["old/notes.md"]
    assert len(shape) == 6


def test_a_tree_is_reshaped_twice_for_one_task(tmp_path: Path) -> None:
    first = reshape(str(tmp_path), "MT-0-1")
    assert reshape(str(tmp_path), "MT-0-1") == first
    assert first[0] == []
