"""The keyboard side of the double: bytes of a raw terminal become submitted prompts.

A carriage return means two things: Enter, and a newline inside text that was pasted without
markers. Only time and chunk shape tell them apart, so the parser is pure (bytes and a clock
reading in, events out) and every such case is a unit test.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import termios
import time

SUBMIT, INTERRUPT, END = "submit", "interrupt", "end"
"""Kinds of events: a prompt was submitted, Ctrl-C, Ctrl-D on an empty line."""

InputEvent = tuple[str, str]
"""Kind and text; the text is empty unless the kind is ``SUBMIT``."""

PASTE_SILENCE_S = 0.25
"""A carriage return after this much silence is a key press, whatever came before it."""

PASTE_BYTES = 512
"""More than this in one read was not typed by anyone."""

_PASTE_START, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ESCAPE = 0x1B
_PLAIN_RUN = re.compile(rb"[\t\n\x20-\x7e\x80-\xff]+")
_ESCAPE_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~]|[\r\x20-\x7e])")
_UNFINISHED_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]{0,16}[ -/]?|O)?\Z")
_SLASH_LINE = re.compile(rb"(/[a-z-]+)\r(?=.)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Interrupted(Exception):
    """Ctrl-C or SIGINT ended what was going on."""


class HungUp(Exception):
    """The terminal is gone, or a signal asked the agent to leave; carries the exit code."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code


class InputParser:
    """Turns what a raw terminal delivers into submitted prompts and interrupts."""

    def __init__(self) -> None:
        self._text = ""
        self._pasted = False
        self._in_paste = False
        self._in_burst = False
        self._held = b""
        self._last_input_s = float("-inf")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def text(self) -> str:
        """What was entered and not submitted yet, with plain newlines."""
        return self._text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def pasted(self) -> bool:
        """Whether any of the text that waits was pasted."""
        return self._pasted

    def feed(self, data: bytes, now: float) -> list[InputEvent]:
        """Take the bytes of one read at monotonic time ``now`` and return what they meant."""
        if now - self._last_input_s >= PASTE_SILENCE_S:
            self._in_burst = False
            if self._held == b"\x1b":
                self._held = b""  # The Escape key alone: nothing followed it.
        self._last_input_s = now
        data, self._held = self._held + data, b""
        events: list[InputEvent] = []
        while data:
            if self._in_paste:
                data = self._take_marked_paste(data)
                continue
            plain, marker, data = data.partition(_PASTE_START)
            if not marker and (tail := _UNFINISHED_ESCAPE.search(plain)):
                plain, self._held = plain[: tail.start()], tail.group()
            if plain:
                self._take_plain(plain, events)
            if marker:
                self._in_paste = self._pasted = True
                self._in_burst = False
        return events

    def _take_marked_paste(self, data: bytes) -> bytes:
        """Take text up to the end marker; return what follows it."""
        body, marker, rest = data.partition(_PASTE_END)
        if marker:
            self._in_paste = False
        else:
            for length in range(len(_PASTE_END) - 1, 0, -1):
                if body.endswith(_PASTE_END[:length]):
                    body, self._held = body[:-length], body[-length:]
                    break
        self._add(body)
        return rest

    def _take_plain(self, data: bytes, events: list[InputEvent]) -> None:
        """Take bytes outside of paste markers: keys, or a paste that came without markers."""
        # Keys that piled up while the agent was stopped look like a paste, except that nobody
        # pastes a text whose first line is a slash command.
        while not self._text and not self._in_burst and (match := _SLASH_LINE.match(data)):
            events.append((SUBMIT, match.group(1).decode("ascii")))
            data = data[match.end() :]
        only_enters = not data.strip(b"\r")
        if len(data) > PASTE_BYTES or (b"\r" in data[:-1] and not only_enters):
            self._in_burst = self._pasted = True
        position = 0
        while position < len(data):
            if run := _PLAIN_RUN.match(data, position):
                self._add(run.group())
                position = run.end()
            elif data[position] == _ESCAPE and (key := _ESCAPE_SEQUENCE.match(data, position)):
                if key.group() == b"\x1b\r":
                    self._add(b"\n")  # Alt-Enter: a newline on purpose.
                position = key.end()
            else:
                self._take_control(data[position], events)
                position += 1

    def _take_control(self, byte: int, events: list[InputEvent]) -> None:
        if byte == 0x0D:
            if self._in_burst:
                self._add(b"\r")
            else:
                self._submit(events)
        elif byte == 0x03:
            self._clear()
            events.append((INTERRUPT, ""))
        elif byte == 0x04 and not self._text:
            events.append((END, ""))
        elif byte in (0x08, 0x7F):
            self._text = self._text[:-1]
        elif byte == 0x15:
            self._clear()

    def _submit(self, events: list[InputEvent]) -> None:
        text = self.text.strip()
        self._clear()
        if text:
            events.append((SUBMIT, text))

    def _add(self, data: bytes) -> None:
        self._text += self._decoder.decode(data)

    def _clear(self) -> None:
        self._text = ""
        self._pasted = False
        self._decoder.reset()


class Terminal:
    """The tty edge: raw mode, signals, and the one wait that everything in the double uses."""

    def __init__(self, input_fd: int | None, output_fd: int) -> None:
        self.prompts: list[str] = []
        self.ended = False
        self.ignores_interrupts = False
        self.ignores_endings = False
        """It stays when it is hung up on, told to end, or when its terminal is gone."""
        self.leaving = False
        self._parser = InputParser()
        self._input_fd = input_fd
        self._output_fd = output_fd
        self._input_gone = False
        self._interrupted = False
        self._hung_up: HungUp | None = None
        self._saved_mode: list[int | list[bytes | int]] | None = None
        self._wake_fd, wake_write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, _leave_to_wake_fd)
        signal.set_wakeup_fd(wake_write_fd, warn_on_full_buffer=False)

    @property
    def interactive(self) -> bool:
        """Whether a person or an orchestrator types here; false with ``--print``."""
        return self._input_fd is not None

    def open(self) -> None:
        """Put the terminal in raw mode and ask for marked pastes."""
        assert self._input_fd is not None, "only an interactive terminal can be opened"
        self._saved_mode = termios.tcgetattr(self._input_fd)
        mode = termios.tcgetattr(self._input_fd)
        mode[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._input_fd, termios.TCSANOW, mode)
        self.show("\x1b[?2004h")

    def close(self) -> None:
        """Give the terminal back as it was found, if it is still there."""
        if self._saved_mode is None or self._input_fd is None:
            return
        self.show("\x1b[?2004l\r\n")
        try:
            termios.tcsetattr(self._input_fd, termios.TCSANOW, self._saved_mode)
        except termios.error:
            return  # A terminal that hung up has no mode to restore.

    def show(self, text: str | bytes) -> None:
        """Print to the terminal, or to standard output when there is none."""
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        try:
            while data:
                data = data[os.write(self._output_fd, data) :]
        except OSError:
            # The pane was closed. The read side reports that as a hang-up; nothing is lost here.
            return

    def show_prompt(self) -> None:
        """Draw the input line: what was typed, or a stand-in for what was pasted."""
        text = self._parser.text
        if self._parser.pasted:
            shown = f"[Pasted text +{text.count(chr(10))} lines]"
        else:
            shown = _CONTROL.sub(" ", text[:70])
        self.show(f"\r\x1b[K> {shown}")

    def show_submitted(self, prompt: str) -> None:
        """Replace the input line by the prompt that was submitted."""
        lines = (_CONTROL.sub(" ", line) for line in prompt[:2000].split("\n"))
        self.show("\r\x1b[K> " + "\r\n  ".join(lines) + "\r\n")

    def next_prompt(self) -> str | None:
        """Wait for a submitted prompt; None after Ctrl-D."""
        while not self.prompts:
            if self.ended:
                return None
            self.wait(None)
        return self.prompts.pop(0)

    def wait(self, timeout_s: float | None, fd: int | None = None) -> bool:
        """Wait until ``fd`` is readable (True) or the time is over (False).

        Without ``fd`` and ``timeout_s`` it returns False as soon as anything happened.

        Raises:
            Interrupted: Ctrl-C or SIGINT, unless they are ignored.
            HungUp: the terminal vanished, or SIGHUP or SIGTERM arrived.
        """
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            watched = [self._wake_fd] if fd is None else [self._wake_fd, fd]
            if self._input_fd is not None and not (self.leaving or self._input_gone):
                watched.append(self._input_fd)
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            ready = select.select(watched, [], [], left_s)[0]
            if self._input_fd in ready:
                self._take_input()
            # Always, and after the input: what was sent before a prompt must not interrupt its turn.
            self._take_signals()
            self._raise_what_happened()
            if fd in ready:
                return True
            if deadline_s is None:
                if fd is None:
                    return False
            elif time.monotonic() >= deadline_s:
                return False

    def _take_signals(self) -> None:
        try:
            numbers = os.read(self._wake_fd, 256)
        except BlockingIOError:
            return
        for number in numbers:
            if number == signal.SIGINT:
                self._interrupted = True
            elif number == signal.SIGHUP:
                self._hung_up = HungUp("hangup", 1)
            elif number == signal.SIGTERM:
                self._hung_up = HungUp("terminated", 128 + number)

    def _take_input(self) -> None:
        assert self._input_fd is not None
        try:
            data = os.read(self._input_fd, 65536)
        except OSError:
            data = b""  # EIO is how Linux says that the other side of the terminal is closed.
        if not data:
            self._hung_up = HungUp("end of input", 1)
            self._input_gone = True
            return
        for kind, text in self._parser.feed(data, time.monotonic()):
            if kind == SUBMIT:
                self.prompts.append(text)
            elif kind == INTERRUPT:
                self._interrupted = True
            else:
                self.ended = True
        self.show_prompt()

    def _raise_what_happened(self) -> None:
        interrupted, self._interrupted = self._interrupted, False
        hung_up, self._hung_up = self._hung_up, None
        if self.leaving:
            return  # Already on the way out; the last hooks may finish.
        if hung_up is not None and not self.ignores_endings:
            raise hung_up
        if interrupted and not self.ignores_interrupts:
            raise Interrupted


def _leave_to_wake_fd(_number: int, _frame: object) -> None:
    """Do nothing: the interpreter has already written the number to the wake-up pipe."""
