"""The keyboard parser of the agent double: when is a carriage return Enter, and when text?"""

from __future__ import annotations

import os
import select
import signal

import pytest

from mutiny.doubles.agents.terminal import (
    END,
    INTERRUPT,
    SUBMIT,
    InputEvent,
    InputParser,
    Terminal,
)

LATER_S = 0.5
AT_ONCE_S = 0.005


def feed_all(*chunks: tuple[bytes, float]) -> list[InputEvent]:
    """Feed chunks, each some time after the one before it, and return all events."""
    parser = InputParser()
    now, events = 100.0, []
    for data, pause_s in chunks:
        now += pause_s
        events += parser.feed(data, now)
    return events


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([(b"hello\r", 0)], id="text and Enter in one read"),
        pytest.param([(b"hello", 0), (b"\r", AT_ONCE_S)], id="Enter at once after the text"),
        pytest.param([(b"hello", 0), (b"\r", LATER_S)], id="Enter after a pause"),
        pytest.param([(bytes([b]), 0.01) for b in b"hello\r"], id="key by key"),
        pytest.param([(b"hello", 0), (b"\r\r", AT_ONCE_S)], id="Enter twice in one read"),
        pytest.param([(b"jello\x7f\x7f\x7f\x7f\x7fhello\r", 0)], id="backspace"),
        pytest.param([(b"wrong\x15hello\r", 0)], id="Ctrl-U"),
        pytest.param([(b"\x1b[A\x1b[1;5Chel\x1bOPlo\x1b[?1;2c\r", 0)], id="keys that are not text"),
        pytest.param([(b"hello\x1b", 0), (b"[D\r", AT_ONCE_S)], id="an arrow key in two reads"),
        pytest.param([(b"\x1b", 0), (b"hello\r", LATER_S)], id="Escape alone"),
    ],
)
def test_typed_text_is_submitted_by_enter(chunks: list[tuple[bytes, float]]) -> None:
    assert feed_all(*chunks) == [(SUBMIT, "hello")]


def test_line_feeds_and_alt_enter_are_newlines() -> None:
    # tmux send-keys -l types a newline as a line feed.
    assert feed_all((b"one\ntwo\x1b\rthree", 0), (b"\r", LATER_S)) == [(SUBMIT, "one\ntwo\nthree")]


def test_enter_on_an_empty_line_is_nothing() -> None:
    assert feed_all((b"\r", 0), (b"  \r", LATER_S)) == []


def test_two_prompts_typed_one_after_the_other() -> None:
    assert feed_all((b"one\r", 0), (b"two\r", AT_ONCE_S)) == [(SUBMIT, "one"), (SUBMIT, "two")]


class TestMarkedPaste:
    """Text between the markers of bracketed paste is text, whatever it contains."""

    START, STOP = b"\x1b[200~", b"\x1b[201~"

    @pytest.mark.parametrize("newline", [b"\r", b"\n", b"\r\n"])
    def test_newlines_are_text(self, newline: bytes) -> None:
        paste = self.START + b"one" + newline + b"two" + newline + self.STOP
        assert feed_all((paste, 0)) == []
        assert feed_all((paste, 0), (b"\r", AT_ONCE_S)) == [(SUBMIT, "one\ntwo")]
        assert feed_all((paste + b"\r", 0)) == [(SUBMIT, "one\ntwo")]

    def test_a_large_one_needs_no_pause(self) -> None:
        text = "\r".join(f"line {number}" for number in range(2000))
        paste = self.START + text.encode() + self.STOP + b"\r"
        chunks = [(paste[at : at + 4095], AT_ONCE_S) for at in range(0, len(paste), 4095)]
        assert feed_all(*chunks) == [(SUBMIT, text.replace("\r", "\n"))]

    def test_every_cut_gives_the_same(self) -> None:
        data = b"a " + self.START + "é\r\n\x03\x1b[20".encode() + self.STOP + b" b\r"
        expected = [(SUBMIT, "a é\n\x03\x1b[20 b")]
        for cut in range(len(data) + 1):
            assert feed_all((data[:cut], 0), (data[cut:], AT_ONCE_S)) == expected, cut

    def test_after_a_paste_typing_goes_on(self) -> None:
        assert feed_all((self.START + b"x\ry" + self.STOP, 0), (b"z\r", AT_ONCE_S)) == [
            (SUBMIT, "x\nyz")
        ]


class TestPasteWithoutMarkers:
    """LLMC pastes large prompts without markers; newlines then arrive as carriage returns."""

    TEXT = "\n".join(f"line {number}: {'x' * 50}" for number in range(120))

    def chunks(self, size: int) -> list[tuple[bytes, float]]:
        data = self.TEXT.replace("\n", "\r").encode()
        return [(data[at : at + size], AT_ONCE_S) for at in range(0, len(data), size)]

    @pytest.mark.parametrize("size", [1024, 4095, 100_000])
    def test_a_lone_enter_after_silence_submits(self, size: int) -> None:
        assert feed_all(*self.chunks(size)) == []
        assert feed_all(*self.chunks(size), (b"\r", LATER_S)) == [(SUBMIT, self.TEXT)]

    def test_a_return_without_silence_is_text(self) -> None:
        events = feed_all(*self.chunks(4095), (b"\r", AT_ONCE_S), (b"end", AT_ONCE_S))
        assert events == []
        assert feed_all(
            *self.chunks(4095), (b"\r", AT_ONCE_S), (b"end", AT_ONCE_S), (b"\r", LATER_S)
        ) == [(SUBMIT, self.TEXT + "\nend")]

    def test_the_last_return_of_a_paste_does_not_submit(self) -> None:
        assert feed_all((b"one\rtwo\r", 0)) == []
        assert feed_all((b"x" * 513 + b"\r", 0)) == []
        assert feed_all((b"one\rtwo\r", 0), (b"\r", LATER_S)) == [(SUBMIT, "one\ntwo")]

    def test_a_small_message_in_one_read_and_enter_after_half_a_second(self) -> None:
        text = "x" * 400 + "\n" + "y" * 500
        assert feed_all((text.encode(), 0), (b"\r", LATER_S)) == [(SUBMIT, text)]

    def test_the_placeholder_shows_only_while_pasted_text_waits(self) -> None:
        parser = InputParser()
        parser.feed(b"one\rtwo\r", 1.0)
        assert parser.pasted
        assert parser.text == "one\ntwo\n"
        parser.feed(b"\r", 2.0)
        assert not parser.pasted
        assert parser.text == ""


def test_slash_commands_that_piled_up_are_taken_one_by_one() -> None:
    piled_up = (b"/clear\rCreate a.txt\r", 0)
    assert feed_all(piled_up) == [(SUBMIT, "/clear"), (SUBMIT, "Create a.txt")]


def test_utf8_is_put_together_over_reads() -> None:
    data = "Grüße, 世界 🚢\r".encode()
    for cut in range(len(data)):
        events = feed_all((data[:cut], 0), (data[cut:], AT_ONCE_S))
        assert events == [(SUBMIT, "Grüße, 世界 🚢")], cut


def test_bytes_that_are_no_utf8_do_not_hurt() -> None:
    assert feed_all((b"a\xff\xfeb\r", 0)) == [(SUBMIT, "a\ufffd\ufffdb")]


def test_ctrl_c_discards_the_line_and_interrupts() -> None:
    assert feed_all((b"half a pro", 0), (b"\x03", AT_ONCE_S), (b"whole\r", LATER_S)) == [
        (INTERRUPT, ""),
        (SUBMIT, "whole"),
    ]


def test_ctrl_c_after_escape_is_heard() -> None:
    assert feed_all((b"\x1b\x03", 0)) == [(INTERRUPT, "")]


def test_ctrl_d_ends_the_input_only_on_an_empty_line() -> None:
    assert feed_all((b"text\x04", 0)) == []
    assert feed_all((b"\x04", 0)) == [(END, "")]


def test_a_signal_from_before_a_prompt_does_not_interrupt_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The wait had seen only the input when the process was at last let on; the signal was there, too."""
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    wake_up = signal.set_wakeup_fd(-1)
    reading, writing = os.pipe()
    really = select.select
    try:
        with open(os.devnull, "wb") as nowhere:
            terminal = Terminal(reading, nowhere.fileno())
            terminal.ignores_interrupts = True

            def late(*_: object) -> tuple[list[int], list[int], list[int]]:
                os.kill(os.getpid(), signal.SIGINT)
                return [reading], [], []

            monkeypatch.setattr(select, "select", late)
            os.write(writing, b"Create two.txt\r")
            assert terminal.next_prompt() == "Create two.txt"
            monkeypatch.setattr(select, "select", really)
            terminal.ignores_interrupts = False
            assert terminal.wait(0.01) is False
    finally:
        signal.set_wakeup_fd(wake_up)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
