"""A target's words are shown and never obeyed, on a terminal and in Markdown."""

from __future__ import annotations

import random

import pytest

from mutiny.report.escape import defused, escape, fenced, plain

CONTROLS = [
    "\x1b[2J",
    "\r",
    "\x07",
    "\x9b1m",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u2028",
    "\ud800",
    "\x00",
]


@pytest.mark.parametrize("bad", CONTROLS, ids=ascii)
def test_control_characters_become_visible(bad: str) -> None:
    for show in (plain, escape, defused):
        shown = show(f"a{bad}b\tc")
        assert all(char.isprintable() or char in "\n\t" for char in shown)
        assert shown.startswith("a\\")
        assert shown.endswith("b\tc")


def test_what_is_harmless_stays_as_it_is() -> None:
    for text in ("", "plain ünïcödé 船", "two\nlines\tand a tab"):
        assert plain(text) == text
    assert plain("line\r\n") == "line\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a [link](http://x) b", r"a \[link\](http\://x) b"),
        ("![image](x)", r"!\[image\](x)"),
        ("<script>alert(1)</script>", r"\<script>alert(1)\</script>"),
        ("see www.evil.example or a@b.c", r"see www\.evil.example or a\@b.c"),
        ("two\n# lines", "two # lines"),
        ("`code [x](y) <b>` stays", "`code [x](y) <b>` stays"),
        ("`` a`b<c `` d<e", r"`` a`b<c `` d\<e"),
        ("less < more <30s", "less < more <30s"),
        ("an open ` and <b>", r"an open ` and \<b>"),
        ("| cell | [x] |", r"| cell | \[x\] |"),
    ],
)
def test_markup_is_dead_outside_of_code(line: str, shown: str) -> None:
    assert defused(line) == shown


def test_no_text_ends_its_own_fence() -> None:
    chance = random.Random(9)
    for _ in range(300):
        text = "".join(chance.choice("`\n~ax<") for _ in range(40))
        first, inside, last = fenced("", text)
        assert first == last
        assert set(first) == {"`"}
        assert first not in inside
        assert (defused(first), defused(inside)) == (first, inside)
