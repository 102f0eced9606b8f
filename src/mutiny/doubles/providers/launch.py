"""How each provider is started: what its command line means, and where its prompt comes from."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PROVIDERS = ("claude", "codex", "gemini")

_ONE_VALUE = {
    "claude": (
        *("--model", "--fallback-model", "--session-id", "--settings", "--permission-mode"),
        *("--output-format", "--input-format", "--system-prompt", "--append-system-prompt"),
        *("-r", "--resume", "--max-turns"),
    ),
    "codex": (
        *("--model", "-m", "-i", "--image", "-c", "--config", "-C", "--cd", "--sandbox", "-s"),
        *("-p", "--profile", "--color", "-o", "--output-last-message", "--output-schema"),
    ),
    "gemini": ("--model", "-m", "-p", "--prompt", "--approval-mode", "--sandbox-image"),
}
_MANY_VALUES = {
    "claude": (
        *("--add-dir", "--allowedTools", "--allowed-tools", "--disallowedTools"),
        *("--disallowed-tools", "--mcp-config"),
    ),
    "codex": ("--add-dir",),
    "gemini": ("--allowed-tools", "--include-directories", "--extensions", "-e"),
}


class Launch:
    """A command line, as far as the double cares."""

    def __init__(self, provider: str, arguments: Sequence[str]) -> None:
        self.provider = provider
        self.model = ""
        self.resumed = ""
        self.prompt: str | None = None
        self.words: list[str] = []
        self.flags: set[str] = set()
        self._read(list(arguments))

    def _read(self, waiting: list[str]) -> None:
        while waiting:
            word = waiting.pop(0)
            flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if not word.startswith("-") or word == "-":
                self.words.append(word)
                continue
            self.flags.add(flag)
            if flag in _MANY_VALUES[self.provider]:
                while waiting and not waiting[0].startswith("-"):
                    waiting.pop(0)
            elif flag in _ONE_VALUE[self.provider]:
                value = value if equals else (waiting.pop(0) if waiting else "")
            self._take(flag, value)
        if self.provider == "codex":
            self._codex_words()
        elif self.words:
            self.prompt = self.words[-1]

    def _take(self, flag: str, value: str) -> None:
        if flag in ("--model", "-m"):
            self.model = value
        elif flag in ("-r", "--resume", "--session-id"):
            self.resumed = value if flag != "--session-id" else ""
        elif self.provider == "gemini" and flag in ("-p", "--prompt"):
            self.prompt = value

    def _codex_words(self) -> None:
        """`exec [PROMPT]`, `resume SESSION exec [PROMPT]` and `exec resume SESSION [PROMPT]`."""
        words = list(self.words)
        if "resume" in words:
            at = words.index("resume")
            self.resumed = words[at + 1] if at + 1 < len(words) else ""
            del words[at : at + 2]
        rest = [word for word in words if word not in ("exec", "e")]
        self.prompt = rest[0] if rest and rest[0] != "-" else None

    @property
    def headless(self) -> bool:
        """Was it asked to work without a terminal?"""
        if self.provider == "codex":
            return bool({"exec", "e"} & set(self.words))
        return True  # the others notice by themselves that there is no terminal


def kind_of(descriptor: int) -> str:
    """What standard input is: file, pipe, tty, null, closed or other."""
    import stat

    try:
        found = os.fstat(descriptor)
    except OSError:
        return "closed"
    if os.isatty(descriptor):
        return "tty"
    if stat.S_ISREG(found.st_mode):
        return "file"
    if stat.S_ISFIFO(found.st_mode):
        return "pipe"
    null = os.stat(os.devnull)
    return "null" if found.st_rdev == null.st_rdev and stat.S_ISCHR(found.st_mode) else "other"


def read_to_end(descriptor: int = 0) -> str:
    """Everything that stands on standard input; waits for its end."""
    data = b""
    while piece := os.read(descriptor, 65536):
        data += piece
    return data.decode("utf-8", "replace")
