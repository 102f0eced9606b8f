"""The table of all plants at the end of the quality suite, and how much is left while it runs."""

from __future__ import annotations

import json
import time

import pytest

from plants import MINIMAL, SHORTER
from prove import HEAD, KEPT, cases, keep_replays, kept

EVERY_S = 60.0
NAME = "test_its_minimal_replay"


class Progress:
    """Now and then: how many, and how long the rest will take."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._started = self._told = time.monotonic()
        self._done = 0
        self._total = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._total = self._total or sum(NAME in item.nodeid for item in session.items)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._total = sum(NAME in one for one in ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or NAME not in report.nodeid:
            return
        self._done += 1
        now = time.monotonic()
        if now - self._told < EVERY_S or not self._total:
            return
        self._told = now
        left = (self._total - self._done) * (now - self._started) / self._done / 60
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            told = f"{self._done} of {self._total} plants, about {left:.0f} minutes left"
            reporter.write_line(f"\n{told}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table; what was never proved about these sources is counted, not left out silently."""
        if not self._total:
            return
        every = list(cases())
        rows = [row for case in every if (row := kept(case)) is not None]
        terminalreporter.section("plants: minimal replays with and without them")
        terminalreporter.write_line(HEAD)
        for row in rows:
            terminalreporter.write_line(row.text)
        wrong = sum(bool(row.problem) for row in rows)
        terminalreporter.write_line(
            f"{len(rows) - wrong} of {len(every)} proved, {wrong} not, "
            f"{len(every) - len(rows)} not tried about these sources"
        )
        table = KEPT.with_suffix(".json")
        told = [json.loads((KEPT / f"{row.case.id}.json").read_text()) for row in rows]
        table.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        keep_replays(rows)
        terminalreporter.write_line(f"As JSON: {table}; replays: {MINIMAL} and {SHORTER.name}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # only the one that prints
        config.pluginmanager.register(Progress(config))
