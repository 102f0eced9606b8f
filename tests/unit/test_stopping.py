"""The wish to stop: who hears it, and what is done to its end all the same."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from mutiny import stopping
from mutiny.engine.minimise import Budget, minimise
from mutiny.kit.operations import Sleep


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_asked", 15)
    monkeypatch.setattr(stopping, "_since", time.monotonic())


def test_nobody_is_stopped_who_was_not_asked() -> None:
    with stopping.running():
        stopping.check()
        stopping.sleep(0)


@pytest.mark.usefixtures("asked")
def test_a_run_is_stopped_and_a_helper_is_not() -> None:
    stopping.check()
    with stopping.running(), pytest.raises(stopping.Stopped, match="SIGTERM"):
        stopping.sleep(60)
    heard = []

    def helper() -> None:
        stopping.check()
        heard.append("went on")

    thread = threading.Thread(target=helper)
    thread.start()
    thread.join()
    assert heard == ["went on"]
    assert stopping.exit_code() == 143


@pytest.mark.usefixtures("asked")
def test_what_must_be_done_has_its_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with stopping.running(), stopping.held_off():
        stopping.check()
        with pytest.raises(stopping.Stopped), stopping.let_in():
            pass
        stopping.check()
        monkeypatch.setattr(stopping, "_since", time.monotonic() - stopping.LAST_S - 1)
        with pytest.raises(stopping.Stopped):
            stopping.check()


@pytest.mark.usefixtures("asked")
def test_a_sleep_that_is_held_off_ends_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopping, "LAST_S", 0.2)
    with stopping.running(), stopping.held_off(), pytest.raises(stopping.Stopped):
        stopping.sleep(60)


def test_a_trial_that_was_broken_off_shortens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not fail in the same way, and it did not pass either: the best so far is the answer."""
    whole = (Sleep(1.0), Sleep(2.0), Sleep(3.0))

    def fails(candidate: object) -> bool:
        monkeypatch.setattr(stopping, "_asked", 2)
        return True

    found = minimise(whole, fails, budget=Budget(confirm=1, of=1))
    assert found.operations == whole
    assert not found.complete
    assert found.runs == 1


def test_the_alarm_of_the_hard_limit_does_not_become_the_exit_code() -> None:
    """Python takes its handlers back on its way out: seen at a load of thirty, exit -14 instead of 130."""
    program = (
        "import signal, time\n"
        "from mutiny import stopping\n"
        "stopping.HARD_LIMIT_S = 0.1\n"
        "stopping.listen()\n"
        "class Late:\n"
        "    def __del__(self): time.sleep(0.5)\n"
        "late = Late()\n"
        "try: signal.raise_signal(signal.SIGINT)\n"
        "except stopping.Stopped: pass\n"
        "print('said')\n"
        "stopping.leave(130)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (130, b"said\n")
