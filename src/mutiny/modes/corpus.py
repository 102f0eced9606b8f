"""Running a corpus: what failed once first, and what became of each entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mutiny import stopping
from mutiny.engine.corpus import GUARD, OPEN, Corpus, Entry, passes_needed
from mutiny.engine.known import Known
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Assignment, Bench


@dataclass(frozen=True)
class Kept:
    """One run of an entry."""

    before: Entry
    after: Entry
    outcome: Outcome
    needed: int
    known: Known | None = None
    """The known finding that it ended with."""

    @property
    def word(self) -> str:
        """What became of it, in a few words."""
        verdict = self.outcome.verdict
        if self.known is not None:
            return "known"
        if verdict is Verdict.INCONCLUSIVE:
            return "inconclusive"
        if verdict.stops_run:
            return "BROKEN AGAIN" if self.before.state == GUARD else "still broken"
        if self.after.state == GUARD:
            return "holds" if self.before.state == GUARD else "mended: a guard from now on"
        return f"passed {self.after.passes} of {self.needed} times"


def run_entry(
    bench: Bench, corpus: Corpus, entry: Entry, replay: Replay, today: str
) -> tuple[Corpus, Kept]:
    """Run one entry; what was shown changes how it stands, and is kept at once."""
    title = f"corpus {entry.name}"
    assignment = Assignment(replay.operations, title, replay.seed, "replay", repeats=True)
    outcome = bench.run(assignment)
    known = bench.known.entry_for(outcome)
    needed = passes_needed(replay)
    after = entry
    if outcome.verdict is not Verdict.INCONCLUSIVE and not stopping.asked():
        after = entry.after(broke=outcome.verdict.stops_run, needed=needed, today=today)
    if after != entry:
        corpus = corpus.having(after)
        corpus.write()
    return corpus, Kept(entry, after, outcome, needed, known)


def run_corpus(
    corpus: Corpus,
    load: Callable[[Entry], tuple[Bench, Replay]],
    times: int,
    today: str,
    watch: Callable[[Kept], None],
) -> list[Kept]:
    """Run every entry, each `times` times or until it breaks."""
    found: list[Kept] = []
    for listed in corpus.ordered():
        bench, replay = load(listed)
        entry = listed
        for _ in stopping.unless_asked(range(times)):
            corpus, kept = run_entry(bench, corpus, entry, replay, today)
            found.append(kept)
            watch(kept)
            entry = kept.after
            if kept.outcome.verdict.stops_run:
                break
    return found


def doubles(found: list[tuple[Entry, int, object]]) -> list[tuple[Entry, Entry]]:
    """Entries that show what a shorter one shows, each with that one; `found`: entry, length, cause."""
    best: dict[object, Entry] = {}
    extra: list[tuple[Entry, Entry]] = []
    for entry, _, cause in sorted(found, key=lambda one: (one[1], one[0].name)):
        if cause is None or entry.state != OPEN:
            continue
        if cause in best:
            extra.append((entry, best[cause]))
        else:
            best[cause] = entry
    return extra
