"""The driver of the real Selfware, without it: what an end means, and what the model is to answer."""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.operations import SystemCrash
from mutiny.doubles.model_api.api import ModelApi
from mutiny.doubles.model_api.script import read_script
from mutiny.kit.operations import Settle
from mutiny.targets.drivers import selfware as driver
from mutiny.targets.session.spec import SessionSpec


@pytest.mark.parametrize(
    ("code", "said", "error"),
    [
        (0, "anything", None),
        (4, "Error: API returned status 529: {}", "model"),
        (1, "step 1\nError: Failed to parse response JSON\n\nCaused by: EOF", "model"),
        (1, "Error: Failed to load checkpoint for task: x", "no_session"),
        (
            1,
            "Error: Failed to create\n\nCaused by:\n    No space left on device (os error 28)",
            "no_space",
        ),
        (101, "thread main panicked", ""),
    ],
)
def test_an_end_becomes_an_answer(code: int, said: str, error: str | None) -> None:
    answer = driver.ended(code, said)
    assert answer["ok"] is (error is None)
    assert answer.get("error") == error


def test_the_conversation_decides_what_is_answered() -> None:
    whole = driver.script("demo")
    api = ModelApi(read_script({key: whole[key] for key in ("version", "rules")}))

    def path(said: str, last: str = "go") -> object:
        step, _ = api.step_for("/v1/chat/completions", "m", last, said)
        return step.tools[0].input["path"] if step.tools else None

    assert path("") == "part01.txt"
    assert path("part01.txt part02.txt") == "part03.txt"
    assert path(" ".join(whole["tasks"].values())) is None
    # A call that could not be read is made again: no result names its file.
    brought = 'part01.txt part02.txt {\\"path\\":\\"part01.txt\\"}'
    assert path(brought, "Your call could not be parsed.") == "part02.txt"
    assert path(brought, "You have completed it. Reflect on the last 5 steps.") is None


def test_settings_of_a_run_come_before_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("continuous_work.checkpoint_interval_tools = 50\n")
    for name, value in {"OWN": tmp_path / "own", "HOME": tmp_path, "SETTINGS": settings}.items():
        monkeypatch.setenv(name, str(value))
    text = Path(driver.configuration(driver.Place())).read_text()
    assert "continuous_work.checkpoint_interval_tools = 50\n" in text
    assert text.count("checkpoint_interval_tools") == 1
    assert 'model = "double"' in text


def test_no_scenario_lets_a_session_end_before_it_crashes() -> None:
    """A wait for some tasks that became a wait for everything leaves nothing that could crash."""
    path = Path(str(files("mutiny.targets.files").joinpath("selfware.toml")))
    found = SessionContract(SessionSpec.load(path).profile).scenarios
    assert {"system_crash", "corrupt_body"} <= set(found)
    for name, sequence in found.items():
        for before, then in pairwise(sequence):
            assert not (isinstance(before, Settle) and isinstance(then, SystemCrash)), name
