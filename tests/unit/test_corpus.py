"""The corpus: open entries, guards, and how many passes mean that something was mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.engine.corpus import GUARD, OPEN, Corpus, Entry, passes_needed, read_corpus
from mutiny.engine.replay import Replay, Tries
from mutiny.errors import FormatError, UsageError
from mutiny.modes.corpus import doubles


def replay(failed: int, tries: int) -> Replay:
    return Replay((), "toy", reproduced=Tries(failed, tries))


@pytest.mark.parametrize(
    ("failed", "tries", "needed"), [(3, 3, 3), (2, 2, 3), (1, 1, 5), (1, 3, 11), (1, 20, 20)]
)
def test_the_rarer_it_failed_the_more_passes_are_needed(
    failed: int, tries: int, needed: int
) -> None:
    assert passes_needed(replay(failed, tries)) == needed


def test_what_nobody_tried_again_needs_some_passes() -> None:
    assert passes_needed(Replay((), "toy")) == 5
    assert passes_needed(replay(0, 3)) == 5


def test_an_open_entry_becomes_a_guard_after_enough_passes_in_a_row() -> None:
    entry = Entry(name="a", since="d0")
    for number, broke in enumerate((False, False, True, False, False)):
        entry = entry.after(broke=broke, needed=3, today=f"d{number + 1}")
        assert (entry.state, entry.since) == (OPEN, "d0")
    entry = entry.after(broke=False, needed=3, today="d6")
    assert (entry.state, entry.passes, entry.since) == (GUARD, 3, "d6")
    held = entry.after(broke=False, needed=3, today="d7")
    assert (held.state, held.since) == (GUARD, "d6")
    broken = held.after(broke=True, needed=3, today="d8")
    assert (broken.state, broken.passes, broken.since) == (OPEN, 0, "d8")


def test_what_failed_last_is_run_first() -> None:
    entries = (
        Entry(name="a", state=GUARD, passes=9),
        Entry(name="b", passes=1),
        Entry(name="c"),
    )
    assert [one.name for one in Corpus(Path(), entries).ordered()] == ["c", "b", "a"]


def test_an_index_is_read_as_it_was_written(tmp_path: Path) -> None:
    hostile = 'x"\n[[entry]]\nname = "y'
    corpus = Corpus(tmp_path).having(Entry(name="a", rule="toy.rule", reason=hostile))
    corpus = corpus.having(Entry(name="b", state=GUARD, passes=3, since="2027-01-01"))
    corpus.write()
    for name in ("a", "b", "new"):
        (tmp_path / f"{name}.json").write_text("[]")
    assert read_corpus(tmp_path).entries == (*corpus.entries, Entry(name="new"))
    (tmp_path / "a.json").unlink()
    assert [one.name for one in read_corpus(tmp_path).entries] == ["b", "new"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[entry]]\nname = "a"\nstate = "shut"', "state 'shut' is none of open, guard"),
        ('[[entry]]\nname = "../a"', "no name of a file"),
        ('[[entry]]\nnmae = "a"', "nmae: unknown key"),
        ('[[enrty]]\nname = "a"', "unknown table 'enrty'"),
    ],
)
def test_a_wrong_index_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(text)
    with pytest.raises(FormatError, match=told):
        read_corpus(tmp_path)


def test_without_a_folder_there_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no corpus"):
        read_corpus(tmp_path / "none")


def test_of_open_entries_with_one_cause_the_shortest_stays() -> None:
    a, b, c = (Entry(name=name) for name in "abc")
    guard = Entry(name="g", state=GUARD)
    found: list[tuple[Entry, int, object]] = [(a, 5, "x"), (b, 3, "x"), (c, 3, None)]
    assert doubles([*found, (guard, 9, "x")]) == [(a, b)]
