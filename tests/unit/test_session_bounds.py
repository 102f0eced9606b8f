"""Where agents of a session may write, and what becomes of a word to go on."""

from __future__ import annotations

from test_contract_session import (
    API,
    CALLS,
    CONTRACT,
    FRESH,
    RESTORED,
    at,
    broken,
    call,
    event,
    point,
    seen,
    sha,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.supported import supported
from mutiny.kit.judging import Moment


def test_an_agent_writes_nothing_but_files_of_the_project() -> None:
    outside = op.OUT_OF_BOUNDS["git"]
    tool = {"name": "write_file", "path": outside, "sha256": sha("git")}
    asked_for = (*API, {**API[0], "tools": [tool]})
    wrote = call("end", 5.5, "c3", ok=True, path=outside, sha256=sha("git"))
    refused = {**wrote, "ok": False, "error": "refused"}
    assert "bytes_as_asked" in broken(seen(api=asked_for, calls=(*CALLS, wrote)))
    assert "bytes_as_asked" not in broken(seen(api=asked_for, calls=(*CALLS, refused)))
    assert not supported(SessionProfile(), op.Trespass())
    assert supported(SessionProfile(walled=True), op.Trespass())


def test_what_was_told_to_go_on_is_not_brought_back_paused() -> None:
    told = (event("session.pause", 11.0, reason="asked"), event("session.continue", 11.0))
    back = event("session.restore", 10.0, checkpoint=1, deltas=0, fell_back=[], status="paused")
    after = seen(more=(*told, back, RESTORED[1]), points=(point(0), point(1), FRESH))
    right = CONTRACT.outcomes(at("paused"), op.Continue(), Moment())
    assert all(one.after.going for one in right)
    assert "answers_truly" in broken(after, model=at("paused", killed=True, going=True))
    for excused in ({"going": False}, {"going": True, "damaged": True}):
        assert "answers_truly" not in broken(after, model=at("paused", killed=True, **excused))
    again = seen(more=(*told, told[0], back, RESTORED[1]), points=(point(0), point(1), FRESH))
    assert "answers_truly" not in broken(again, model=at("paused", killed=True, going=True))
