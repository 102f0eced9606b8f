"""What a dying program says, in each language: one table for every contract and every report.

A crash is recognised by its form, never by a word: it begins a line, and it has what its language puts
around it. So a task that is called "Traceback", a refusal that quotes a panic, and the log of a test run
that a command passes on are no crashes of the target.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mutiny.model.operation import Operation
    from mutiny.model.result import OperationResult


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in source code that a crash names."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")

    @property
    def foreign(self) -> bool:
        """Code of a language's own library or of somebody's package."""
        return bool(re.search(_LIBRARY, self.file) or re.match(_RUNTIME, self.function))


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash, as its language tells it."""

    language: str
    line: str
    """What went wrong, in one line."""
    frames: tuple[Frame, ...] = ()
    """Innermost last."""

    def place(self, names: Iterable[str] = ()) -> Frame | None:
        """The innermost frame of the target's own code: that of a package of one of these names, else
        one that no library owns; the innermost of all when every frame is a library's.
        """
        wanted = tuple(f"/{name}/" for name in names if name)
        named = [frame for frame in self.frames if any(word in frame.file for word in wanted)]
        own = named or [frame for frame in self.frames if not frame.foreign] or list(self.frames)
        return own[-1] if own else None


_LIBRARY = (
    r"/lib(?:64)?/python\d|site-packages|dist-packages|^<(?!stdin>|string>)|/rustc/|/\.cargo/|^library/(?:core|std|alloc)/"
    r"|/go/pkg/mod/|/usr/(?:local|lib)/go\S*/src/|node_modules/|^node:|^internal/|/usr/lib/ruby|/gems/|/usr/include/"
)
_RUNTIME = r"java\.|javax\.|jdk\.|sun\.|System\.|runtime\.|core::|std::|alloc::"
_ESCAPES = r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
_TEST_RUN = (
    r"^(?:test result: FAILED|FAILED \((?:errors|failures)=|=+ short test summary|--- FAIL: |FAIL\t"
    r"|Tests: +\d+ failed|# fail \d+|Tests run: \d+)"
)
"""The last words of test runners: what stands above them is about the tested code."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How one language begins to tell of a crash, and where in it the reason stands."""

    language: str
    begins: str
    reason: str = ""
    """The line with the reason, when it is not the one that begins; the last match counts."""
    frame: str = ""
    """Which pattern reads its frames."""
    innermost_first: bool = True

    def beginnings(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """Where such a crash may begin; patterns are compiled when something has ended badly."""
        return re.compile(self.begins, re.MULTILINE).finditer(text, start)


_PYTHON_REASON = r"^(?: *\| )?[A-Za-z_][\w.]*(?:: .*)?$"
_FORMS = (
    _Form(
        "Python",
        r'^[ |+]*(?:Exception Group )?Traceback \(most recent call last\):\n[ |]*File "',
        _PYTHON_REASON,
        "python",
        innermost_first=False,
    ),
    _Form(
        "Python",
        r"^[╭┌+][─\-]+ ?Traceback \(most recent call last\)",
        r"^[A-Za-z_][\w.]*(?:: .*)?$",
        "rich",
        innermost_first=False,
    ),
    _Form("Python", r'^  File "[^"\n]+", line \d+\n(?:.*\n){1,3}?\w*(?:Syntax|Indentation|Tab)Error: ',
          r"^\w+Error: .*$", "python", innermost_first=False),
    _Form("Python", r"^Fatal Python error: ", "", "python"),
    _Form("Rust", r"^thread (?:'[^'\n]*' )?(?:\(\d+\) )?panicked at ", "", "rust"),
    _Form("Rust", r"^thread '[^'\n]*' (?:\(\d+\) )?has overflowed its stack"),
    _Form("Rust", r"^(?:fatal runtime error: |thread panicked while |The application panicked \(crashed\))",
          "", "rust"),
    _Form("Go", r"^panic: .*(?:\n.*){0,3}\n\s*goroutine \d+ (?:gp=\S+ m=\S+ (?:mp=\S+ )?)?\[", "", "go"),
    _Form("Go", r"^fatal error: .*(?:\n.*){0,3}\n\s*goroutine \d+ ", "", "go"),
    _Form("Go", r"^panic: runtime error: ", "", "go"),
    _Form(
        "Node",
        r"^\S+:\d+\n(?:.*\n){0,3}?[ \t]*\^+[ \t]*\n(?=[\s\S]*(?:^ +at |^Node\.js v))",
        r"^(?:Uncaught )?\[?[A-Za-z_$][\w$.]*(?: \[[\w.]+\])?: .*$",
        "node",
    ),
    _Form("Node", r"^error: Uncaught ", "", "node"),
    _Form("Node", r"^\[?(?:\(node:\d+\) )?UnhandledPromiseRejection", "", "node"),
    _Form("Java", r'^Exception in thread "[^"\n]*" ', "", "java"),
    _Form("Java", r"^# A fatal error has been detected by the Java Runtime Environment"),
    _Form(".NET", r"^Unhandled [Ee]xception[.:] ", "", "dotnet"),
    _Form("C++", r"^terminate called (?:after throwing|without an active|recursively)"),
    _Form("C++", r"^libc\+\+abi(?:\.dylib)?: terminating "),
    _Form("C", r"^\S+: \S+:\d+: .*: Assertion [`'].*' failed\.", "", "c"),
    _Form("C", r"^(?:Assertion failed: \(|\*\*\* stack smashing detected|\*\*\* buffer overflow detected)"),
    _Form("C", r"^(?:double free or corruption|free\(\): |malloc\(\): |corrupted size vs)"),
    _Form("C", r"^(?:==\d+==)?(?:ERROR|WARNING): (?:Address|Memory|Thread|Leak|HWAddress)Sanitizer: ",
          "", "sanitizer"),
    _Form("C", r"^\S+:\d+:\d+: runtime error: ", "", "c"),
    _Form("shell", r"^(?:\S+: line \d+: +)?(?:\d+ )?(?:Segmentation fault|Bus error|Illegal instruction)",
          "", "shell"),
    _Form("shell", r"^\S+: (?:line )?\d+: \S+: (?:unbound variable|parameter not set)$",
          "", "shell"),
    _Form("shell", r"^\S+: (?:line )?\d+: (?:[Ss]yntax error|unexpected EOF)", "", "shell"),
    _Form("Ruby", r"^\S+\.rb:\d+:in ['`].*\((?:[A-Z]\w*(?:::\w+)*)\)$", "", "ruby"),
    _Form("PHP", r"^PHP Fatal error: +Uncaught ", "", "php"),
    _Form("Lua", r"^lua\S*: \S+:\d+: .*\nstack traceback:", "", "c"),
    _Form("OCaml", r"^Fatal error: exception "),
    _Form("Elixir", r"^\*\* \([A-Z]\w*(?:\.\w+)*\) .*\n +\S+:\d+: "),
    _Form("its own words", r"^[\w.-]+(?: [\w.-]+)?: internal error: "),
    _Form("Zig", r"^thread \d+ panic: ", "", "c"),
)  # fmt: skip
_FRAMES = {
    "python": r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?',
    "rich": r"^[│|] +(?P<file>\S+\.py):(?P<line>\d+) in (?P<function>\S+)",
    "rust": r"(?:panicked at (?:'.*', )?|^ +at |Location: *)(?P<file>[^\s':]+\.rs):(?P<line>\d+)",
    "go": r"^(?P<function>[\w./*()-]+)\(.*\)\n\t(?P<file>\S+\.go):(?P<line>\d+)",
    "node": r"^ +at (?:(?:async |new )*(?P<function>[^\s(]+).*? \()?(?:file://)?(?P<file>[^\s()]+?):(?P<line>\d+)(?::\d+)?\)?$",
    "java": r"^\s+at (?P<function>[\w.$/<>]+)\((?P<file>[\w$]+\.\w+):(?P<line>\d+)\)",
    "dotnet": r"^\s+at (?P<function>\S+?)\(.*\) in (?P<file>\S+):line (?P<line>\d+)",
    "sanitizer": r"^ +#\d+ 0x[0-9a-f]+ in (?P<function>\S+) (?P<file>[^\s:]+):(?P<line>\d+)",
    "shell": r"^(?P<file>\S+): (?:line )?(?P<line>\d+): ",
    "ruby": r"(?P<file>\S+\.rb):(?P<line>\d+):in ['`](?P<function>[^']+)'",
    "php": r"(?P<file>/\S+\.php)(?::|\()(?P<line>\d+)",
    "c": r"^(?:\S+: )?(?P<file>[^\s:]+):(?P<line>\d+):",
}


def without_escapes(text: str) -> str:
    """Without the sequences that colour a text or move a cursor."""
    return re.sub(_ESCAPES, "", text)


def crash_in(text: str, echoed: Sequence[str] = ()) -> Crash | None:
    """The crash that a program tells of; `echoed`: what it was given, and may only repeat."""
    told = _own_words(text, echoed)
    over = max((match.end() for match in re.finditer(_TEST_RUN, told, re.MULTILINE)), default=0)
    found = [
        (match.start(), number, form)
        for number, form in enumerate(_FORMS)
        for match in form.beginnings(told, over)
    ]
    if not found:
        return None
    start, _, form = min(found)
    rest = told[start:]
    frames = tuple(_frames(form, rest))
    return Crash(
        form.language, _reason(form, rest), frames[::-1] if form.innermost_first else frames
    )


def crash_of(exit_code: int | None, text: str, echoed: Sequence[str] = ()) -> Crash | None:
    """The crash that ended a program; one that ended well has none, whatever it wrote down."""
    return None if exit_code == 0 else crash_in(text, echoed)


def _own_words(text: str, echoed: Sequence[str]) -> str:
    plain = without_escapes(text.replace("\r\n", "\n"))
    for given in sorted(echoed, key=len, reverse=True):
        if any(True for form in _FORMS for _ in form.beginnings(given)):
            plain = plain.replace(given, "(...)")
    return plain


def _reason(form: _Form, text: str) -> str:
    """What went wrong: below the last frame in Python, in the first fitting line elsewhere."""
    lines = text.splitlines()
    first = lines[0].strip()
    if form.reason:
        places = [match.end() for match in re.finditer(_FRAMES[form.frame], text, re.MULTILINE)]
        start = 0 if form.innermost_first else max(places, default=0)
        said = re.compile(form.reason, re.MULTILINE).search(text, start)
        return said.group().strip(" |") if said is not None else first
    below = next((line.strip() for line in lines[1:] if line.strip()), "")
    # Rust since 1.73 and C++ tell the place first and the reason in the next line.
    more = first.endswith(":") or first.startswith(("terminate called after", "thread panicked"))
    return f"{first} {below}" if more and below else first


def _frames(form: _Form, text: str) -> Iterator[Frame]:
    if not form.frame:
        return
    for match in re.finditer(_FRAMES[form.frame], text, re.MULTILINE):
        parts = match.groupdict()
        yield Frame(parts["file"], int(parts["line"]), parts.get("function") or "")


def how_it_died(operation: Operation, result: OperationResult) -> str | None:
    """A command that was ended by a signal or by a crash of its own, in one sentence."""
    if result.signal is not None:
        return f"{operation} was ended by signal {result.signal} ({_signal_name(result.signal)})."
    for text in (result.stderr, result.stdout):
        crash = crash_of(result.exit_code, text, result.argv)
        if crash is not None:
            return f"{operation} crashed: {crash.line}"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
