"""An agent that leaves its branch by itself: what the target is held to once it says that all is done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import belief, model, picture, view
from mutiny.contracts.workers.profile import Profile


@pytest.mark.parametrize("turn", ["die-elsewhere", "die-detached"])
def test_who_strayed_is_excused_until_the_target_says_that_it_is_done(turn: str) -> None:
    strayed = model(replace(belief("alpha", "working"), behaviours=(turn, "obey")))
    assert strayed.astray("alpha", picture(view("alpha", "working")))
    assert not strayed.astray("alpha", picture(view("alpha", "needs_review")))
    silent = replace(strayed, profile=Profile(shows_ends=False))
    assert silent.astray("alpha", picture(view("alpha", "needs_review")))


def test_an_agent_that_obeys_has_no_excuse() -> None:
    plain = model(belief("alpha", "working"))
    assert not plain.astray("alpha", picture(view("alpha", "working")))
