"""Understanding a prompt, without touching anything: which files, which tokens, which kind.

The double is no language model. It understands the sentences that chaos scenarios are written in
("Create a file named X with content 'Y'") wherever they stand in a longer prompt, and it must
not misread the preamble that an orchestrator puts before them ("Create a single commit ...").
"""

from __future__ import annotations

import os.path
import re

FileRequest = tuple[str, str | None]
"""A path and the content it shall have; None when the prompt names no content."""

_TOKEN = re.compile(r"\bMT-[0-9a-z]+-[0-9]+\b")
_TOKEN_WITH_WRAPPING = re.compile(
    r"[\[(<{]\s*(?:token\s*[:=]?\s*)?MT-[0-9a-z]+-[0-9]+\s*[\])>}]"
    r"|(?:\btoken\s*[:=]?\s*)?\bMT-[0-9a-z]+-[0-9]+\b",
    re.IGNORECASE,
)
_TOKEN_LINE = re.compile(r"token: MT-[0-9a-z]+-[0-9]+\Z")

_VERB = re.compile(r"(?<!not )(?<!n't )(?<!never )\b(?:create|add|write|make)\b", re.IGNORECASE)
_FILLER = re.compile(
    r"\s+(?:also|another|an?|the|new|empty|small|text|source|script|module|files?|at):?(?=\s)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s+(?:named|called):?(?=\s)", re.IGNORECASE)
_NAME = re.compile(
    r"""\s*(?:`([^`\n]+)`|"([^"\n]+)"|'([^'\n]+)'|([\w.@+-]+(?:/[\w.@+-]+)*))""",
)
_NEXT_NAME = re.compile(r"\s*(?:,\s*and\b|,|\band\b|&)(?=\s)", re.IGNORECASE)
_WITH = re.compile(
    r"\s+(?:with|containing)\b"
    r"(?:\s+the)?(?:\s+(?:contents?|text|body|line|code)\b)?[ \t]*[:=]?[ \t]*",
    re.IGNORECASE,
)
_FENCED = re.compile(r"\s*```[^\n]*\n(.*?)\n?```", re.DOTALL)
_QUOTED = re.compile(r"""(['"`])(.*?)\1(?=[\s.,;:!?)\]]|\Z)""", re.DOTALL)
_LINE = re.compile(r"[^\n]*")
_SENTENCE_END = re.compile(
    r"\.\s+(?=[A-Z])"
    r"|[.;,]?\s+(?:and|then|also|please)(?:\s+(?:then|also|please))*\s+(?:create|add|write)\s"
    r"|[.;]\s+(?=(?:also|then|please|create|add)\b)",
    re.IGNORECASE,
)
_NOT_A_NAME = frozenset({"e.g", "i.e", "etc"})

_CONFLICT = re.compile(
    r"\A\s*(?:REBASE CONFLICT DETECTED|A rebase onto \S+ has encountered conflicts)"
    r"|\brebase\b[^.\n]*\bconflicts?\b|\b(?:resolve|fix)\b[^.\n]*\bconflicts?\b",
    re.IGNORECASE,
)

SUBJECT_WORDS = 8
"""Words of the prompt that become the subject line of its commit."""


def find_tokens(prompt: str) -> list[str]:
    """Return the tokens of a prompt, each once, in the order of their first mention."""
    return list(dict.fromkeys(_TOKEN.findall(prompt)))


def kind_of(prompt: str, *, rebase_in_progress: bool) -> str:
    """Return ``conflict``, ``task`` or ``other``."""
    if rebase_in_progress or _CONFLICT.search(prompt):
        return "conflict"
    return "task" if find_tokens(prompt) or requested_files(prompt) else "other"


def requested_files(prompt: str) -> list[FileRequest]:
    """Return the files that a prompt asks for; a later mention of a path wins."""
    found: dict[str, str | None] = {}
    position = 0
    while verb := _VERB.search(prompt, position):
        position = verb.end()
        names, position = _read_names(prompt, position)
        while names:
            content, position = _read_content(prompt, position)
            for name in names:
                found[name] = content
            # "Create a.txt with 'x' and b.txt with 'y'": the verb counts for both.
            joint = _NEXT_NAME.match(prompt, position)
            names, after = _read_names(prompt, joint.end()) if joint else ([], position)
            position = after if names else position
    return list(found.items())


def _read_names(prompt: str, position: int) -> tuple[list[str], int]:
    """Read one or more file names at a position; return them and the position behind them."""
    names: list[str] = []
    after_names = position
    while True:
        while filler := _FILLER.match(prompt, position):
            position = filler.end()
        named = _NAMED.match(prompt, position)
        match = _NAME.match(prompt, named.end() if named else position)
        if match is None:
            return names, after_names
        quoted = match.group(1) or match.group(2) or match.group(3)
        word = quoted or match.group(4).rstrip(".")
        path = safe_path(word)
        if path is None or not (named or _looks_like_a_file(word)):
            return names, after_names
        names.append(path)
        after_names = match.end() if quoted else match.start(4) + len(word)
        joint = _NEXT_NAME.match(prompt, after_names)
        if joint is None:
            return names, after_names
        position = joint.end()


def _looks_like_a_file(word: str) -> bool:
    base = word.rsplit("/", 1)[-1]
    if word.lower() in _NOT_A_NAME or any(character.isspace() for character in word):
        return False
    return "/" in word or re.search(r"(?:\A|\w)\.\w", base) is not None


def safe_path(name: str) -> str | None:
    """Return a path normalised, or None if it leads out of the working directory or into .git."""
    path = os.path.normpath(name)
    parts = path.split("/")
    if os.path.isabs(path) or path in (".", "") or ".." in parts or ".git" in parts:
        return None
    return path


def _read_content(prompt: str, position: int) -> tuple[str | None, int]:
    """Read ``with ...`` at a position; None when the prompt names no content."""
    match = _WITH.match(prompt, position)
    if match is None:
        return None, position
    position = match.end()
    if fenced := _FENCED.match(prompt, position):
        return fenced.group(1), fenced.end()
    if quoted := _QUOTED.match(prompt, position):
        return quoted.group(2), quoted.end()
    line = _LINE.match(prompt, position)
    assert line is not None, "the pattern matches the empty line too"
    text, end = line.group(), line.end()
    if sentence := _SENTENCE_END.search(text):
        text = text[: sentence.start()]
        # Stay before the words that begin the next request.
        end = position + sentence.start()
    return without_tokens(text).removesuffix("."), end


def without_tokens(text: str) -> str:
    """Return a text without its tokens and what wraps them."""
    return _TOKEN_WITH_WRAPPING.sub("", text).strip()


def file_body(existing: str | None, content: str | None, tokens: list[str]) -> str:
    """Return what a file shall contain: the content, then one line per token.

    Token lines of earlier work stay, so that the double itself never destroys the trace of
    another agent's work; a file that exists and has no content named keeps its content.
    """
    old_lines = (existing or "").splitlines()
    body = old_lines if content is None else content.splitlines()
    trace = [line for line in (*old_lines, *body) if _TOKEN_LINE.match(line)]
    trace += [f"token: {token}" for token in tokens]
    body = [line for line in body if not _TOKEN_LINE.match(line)]
    return "".join(f"{line}\n" for line in (*body, *dict.fromkeys(trace)))


def commit_message(prompt: str, tokens: list[str]) -> str:
    """Return subject and trailers: the first words of what was asked, and each token."""
    lines = [line for line in prompt.splitlines() if without_tokens(line)]
    asking = [line for line in lines if requested_files(line)] or lines or ["Work"]
    words = without_tokens(asking[0]).lstrip(":;,.- ").split()[:SUBJECT_WORDS]
    subject = " ".join(words) or "Work"
    trailers = "".join(f"\nMutiny-Token: {token}" for token in tokens)
    return subject[:72] + (f"\n{trailers}" if trailers else "") + "\n"


def keep_both_sides(text: bytes) -> bytes:
    """Return a conflicted file with the markers dropped and both sides kept, ours first."""
    kept: list[bytes] = []
    inside = base = False
    for line in text.splitlines(keepends=True):
        if line.startswith(b"<<<<<<< "):
            inside = True
        elif inside and line.startswith(b"|||||||"):
            base = True
        elif inside and line.rstrip(b"\r\n") == b"=======":
            base = False
        elif inside and line.startswith(b">>>>>>> "):
            inside = False
        elif not base:
            kept.append(line)
    return b"".join(kept)
