"""What a dying program says: real samples of each language, and texts that only look like one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mutiny
from mutiny.kit.crash import Frame, crash_in, crash_of

PYTHON = """Traceback (most recent call last):
  File "/opt/app/venv/bin/coord", line 8, in <module>
    sys.exit(main())
             ^^^^^^
  File "/opt/app/src/coord/cli.py", line 31, in main
    raise
  File "/opt/app/src/coord/board.py", line 142, in load
    return json.loads(text)
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""
PYTHON_CHAINED = """Traceback (most recent call last):
  File "/x/a.py", line 3, in f
    d["k"]
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/cli.py", line 9, in main
    report(error)
  File "/x/report.py", line 4, in report
    raise ValueError("no")
ValueError: no
"""
PYTHON_GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/x/serve.py", line 7, in run
  |     raise
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/x/task.py", line 12, in work
    |     raise RuntimeError("boom")
    | RuntimeError: boom
    +------------------------------------
"""
PYTHON_RICH = """╭─────────────────── Traceback (most recent call last) ────────────────────╮
│ /x/src/tool/cli.py:12 in main                                            │
│                                                                          │
│ ❱ 12     load()                                                          │
╰──────────────────────────────────────────────────────────────────────────╯
KeyError: 'alpha'
"""
PYTHON_SYNTAX = (
    '  File "/x/plugin.py", line 3\n    def (:\n        ^\nSyntaxError: invalid syntax\n'
)
RUST_2024 = """thread 'main' (114) panicked at src/main.rs:3:5:
called `Option::unwrap()` on a `None` value
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
RUST_BACKTRACE = """thread 'main' panicked at /rustc/90b35a62/library/core/src/option.rs:1973:5:
no entry found for key
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90b35a62/library/std/src/panicking.rs:665:5
   1: core::panicking::panic_fmt
             at /rustc/90b35a62/library/core/src/panicking.rs:74:14
   2: llmc::state::load
             at ./src/state.rs:142:9
   3: llmc::main
             at ./src/main.rs:8:3
"""
GO = """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47b2c1]

goroutine 1 [running]:
main.load(0x0)
\t/src/app/board.go:42 +0x1d
main.main()
\t/src/app/main.go:9 +0x25
exit status 2
"""
GO_DEADLOCK = """fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan receive]:
main.main()
\t/src/app/main.go:5 +0x31
"""
NODE = """/srv/app/board.js:14
    throw new Error("no such task");
    ^

Error: no such task
    at claim (/srv/app/board.js:14:11)
    at Module._compile (node:internal/modules/cjs/loader:1256:14)
    at Object.<anonymous> (/srv/app/cli.js:3:1)

Node.js v20.11.1
"""
NODE_REJECTION = """node:internal/process/promises:288
            triggerUncaughtException(err, true /* fromPromise */);
            ^

[UnhandledPromiseRejection: This error originated either by throwing inside of an async function.] {
  code: 'ERR_UNHANDLED_REJECTION'
}

Node.js v18.19.0
"""
NODE_OLD = "(node:123) UnhandledPromiseRejectionWarning: Error: no\n    at f (/srv/a.js:3:9)\n"
JAVA = """Exception in thread "main" java.lang.NullPointerException: task is null
\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)
\tat org.board.Board.claim(Board.java:42)
\tat org.board.Main.main(Main.java:7)
"""
DOTNET = """Unhandled exception. System.InvalidOperationException: no task
   at Board.Store.Claim(String name) in /src/Store.cs:line 42
   at Program.Main() in /src/Program.cs:line 3
"""
CPP = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no task\n"
ASAN = """=================================================================
==4242==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x0001
READ of size 4 at 0x602000000010 thread T0
    #0 0x4f8a1b in claim /src/board.c:42:9
    #1 0x4f8b00 in main /src/main.c:7:3
"""
RUBY = "board.rb:14:in 'Board#claim': no task (ArgumentError)\n\tfrom cli.rb:3:in '<main>'\n"
COLOURED = PYTHON_CHAINED.replace("Traceback", "\x1b[1;31mTraceback").replace("):", "):\x1b[0m")


@pytest.mark.parametrize(
    ("text", "language", "line", "place"),
    [
        (PYTHON, "Python", "json.decoder.JSONDecodeError: Expecting value", "board.py:142 in load"),
        (PYTHON_CHAINED, "Python", "ValueError: no", "/x/report.py:4 in report"),
        (PYTHON_GROUP, "Python", "RuntimeError: boom", "/x/task.py:12 in work"),
        (PYTHON_RICH, "Python", "KeyError: 'alpha'", "/x/src/tool/cli.py:12 in main"),
        (PYTHON_SYNTAX, "Python", "SyntaxError: invalid syntax", "/x/plugin.py:3"),
        (COLOURED, "Python", "ValueError: no", "/x/report.py:4 in report"),
        ("Fatal Python error: Segmentation fault\n", "Python", "Segmentation fault", ""),
        (RUST_2024, "Rust", "called `Option::unwrap()` on a `None` value", "src/main.rs:3"),
        (RUST_2024.replace(" (114)", ""), "Rust", "panicked at src/main.rs:3:5: called", "src/main"),
        ("thread 'main' panicked at 'no entry', src/state.rs:142:9\n", "Rust", "no entry", "state.rs:142"),
        ("thread '<unnamed>' (7) panicked at src/a.rs:1:2:\nx\n", "Rust", "src/a.rs:1:2: x", "src/a.rs:1"),
        (RUST_BACKTRACE, "Rust", "no entry found for key", "./src/state.rs:142"),
        ("\nthread 'main' (9) has overflowed its stack\nfatal runtime error: stack overflow\n",
         "Rust", "has overflowed its stack", ""),
        ("The application panicked (crashed).\nMessage:  no\nLocation: src/cli.rs:7\n", "Rust",
         "The application panicked", "src/cli.rs:7"),
        (GO, "Go", "panic: runtime error: invalid memory", "/src/app/board.go:42 in main.load"),
        (GO.replace("goroutine 1 [", "goroutine 1 gp=0xc000002380 m=0 mp=0x55d5a0 ["), "Go", "panic: ",
         "board.go:42"),
        (GO_DEADLOCK, "Go", "all goroutines are asleep", "/src/app/main.go:5 in main.main"),
        (NODE, "Node", "Error: no such task", "/srv/app/board.js:14 in claim"),
        (NODE_REJECTION, "Node", "[UnhandledPromiseRejection: This error", ""),
        (NODE_OLD, "Node", "UnhandledPromiseRejectionWarning: Error: no", "/srv/a.js:3 in f"),
        ("error: Uncaught (in promise) Error: no\n    at file:///srv/a.ts:3:9\n", "Node", "Error: no",
         "/srv/a.ts:3"),
        (JAVA, "Java", "NullPointerException: task is null", "Board.java:42"),
        (DOTNET, ".NET", "System.InvalidOperationException: no task", "/src/Store.cs:42"),
        (CPP, "C++", "std::runtime_error' what():  no task", ""),
        ("libc++abi: terminating due to uncaught exception of type int\n", "C++", "terminating", ""),
        ("board: board.c:42: claim: Assertion `task != NULL' failed.\n", "C", "Assertion", "board.c:42"),
        ("*** stack smashing detected ***: terminated\n", "C", "stack smashing", ""),
        ("free(): invalid pointer\n", "C", "free(): invalid pointer", ""),
        (ASAN, "C", "AddressSanitizer: heap-use-after-free", "/src/board.c:42 in claim"),
        ("board.c:3:5: runtime error: signed integer overflow\n", "C", "signed integer", "board.c:3"),
        ("./board.sh: line 7: TASK: unbound variable\n", "shell", "TASK: unbound variable", "./board.sh:7"),
        ("./board.sh: 7: TASK: parameter not set\n", "shell", "TASK: parameter not set", "./board.sh:7"),
        ("./b.sh: line 9: syntax error near unexpected token `fi'\n", "shell", "syntax error", "./b.sh:9"),
        ("./b.sh: line 3: 4711 Segmentation fault      (core dumped) ./helper\n", "shell",
         "Segmentation fault", "./b.sh:3"),
        ("Segmentation fault (core dumped)\n", "shell", "Segmentation fault", ""),
        (RUBY, "Ruby", "no task (ArgumentError)", "board.rb:14"),
        ("PHP Fatal error:  Uncaught Exception: no in /srv/b.php:7\n", "PHP", "Uncaught", "/srv/b.php:7"),
        ("Fatal error: exception Failure(\"no\")\n", "OCaml", "Failure", ""),
        ("thread 4242 panic: reached unreachable code\n", "Zig", "reached unreachable", ""),
    ],
)  # fmt: skip
def test_a_crash_is_known_with_its_reason_and_its_own_place(
    text: str, language: str, line: str, place: str
) -> None:
    for said in (text, f"starting up\nWorker 'alpha' is not idle\n{text}"):
        crash = crash_in(said)
        assert crash is not None
        assert crash.language == language
        assert line in crash.line
        found = crash.place()
        assert (str(found) if found else "") == place or place in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "error: a task 'Traceback (most recent call last):' exists already\n",
        "error: task text: thread 'main' panicked at src/main.rs:3:5:\n",
        "refused: worker said: panic: runtime error: index out of range\n",
        "Traceback (most recent call last) is not a valid name\n",
        "the last run panicked; see the log\n",
        "thread safety was not panicked about\n",
        "Error: no such task\n    at least one worker must be named\n",
        "tests failed:\n---- state::loads stdout ----\n"
        "thread 'state::loads' (12) panicked at src/state.rs:9:5:\n"
        "assertion failed\n\ntest result: FAILED. 3 passed; 1 failed\nerror: validation failed\n",
        "ERROR: test_x (a.T)\n----\nTraceback (most recent call last):\n"
        '  File "a.py", line 3, in test_x\nKeyError: 1\n\nFAILED (errors=1)\naccept refused\n',
        "--- FAIL: TestClaim\npanic: boom\n\ngoroutine 6 [running]:\n"
        "--- FAIL: TestClaim (0.00s)\nFAIL\tboard 0.1s\n",
        "board.json: 3: task not found\n",
        "usage: board claim TASK\nboard: error: line 3: too long\n",
        "src/a.ts:3\n  const x\n  ^\nfound 1 error\n",
        "the worker had a Segmentation fault\n",
        "Exception in thread handling is not supported\n",
    ],
)
def test_a_text_that_only_mentions_one_is_no_crash(text: str) -> None:
    assert crash_in(text) is None


@pytest.mark.parametrize("text", [PYTHON, RUST_2024, GO, NODE, JAVA, ASAN])
def test_what_the_program_was_given_and_repeats_is_not_its_own_crash(text: str) -> None:
    answer = f"error: a task\n{text} exists already\n"
    assert crash_in(answer) is not None
    assert crash_in(answer, ("add", text)) is None
    assert crash_in(f"{answer}{CPP}", ("add", text)) is not None, "its own crash is still one"


def test_the_targets_own_path_is_not_taken_for_an_echo() -> None:
    crash = crash_in(PYTHON, ("/opt/app/venv/bin/coord", "/opt/app/src/coord/board.py", "add"))
    assert crash is not None
    assert crash.place() == Frame("/opt/app/src/coord/board.py", 142, "load")


def test_there_is_one_table_for_all_contracts_and_reports() -> None:
    source = Path(mutiny.__file__).parent
    knows = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"panicked|Traceback \\?\(most|goroutine", path.read_text(encoding="utf-8"))
    }
    assert knows == {"kit/crash.py"}


@pytest.mark.parametrize("text", [PYTHON, RUST_2024, GO])
def test_a_program_that_ended_well_has_not_crashed(text: str) -> None:
    assert crash_of(0, text) is None
    assert crash_of(1, text) is not None
    assert crash_of(None, text) is not None


def test_the_place_is_the_targets_own_not_a_librarys() -> None:
    installed = PYTHON.replace("/opt/app/src/coord/", "/venv/lib/python3.12/site-packages/coord/")
    crash = crash_in(installed)
    assert crash is not None
    found = crash.place(("coord",))
    assert found is not None
    assert found.file.endswith("site-packages/coord/board.py")
    assert crash_in(PYTHON).place() == Frame("/opt/app/src/coord/board.py", 142, "load")  # type: ignore[union-attr]


def test_where_every_frame_is_a_librarys_the_innermost_is_named() -> None:
    text = 'Traceback (most recent call last):\n  File "/usr/lib/python3.11/a.py", line 3, in f\nKeyError\n'
    crash = crash_in(text)
    assert crash is not None
    assert crash.place() == Frame("/usr/lib/python3.11/a.py", 3, "f")
