"""What an answer of a board says to the history of a run, and to whoever looked for a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mutiny.kit.answer import Answer
from mutiny.model.result import OperationResult


def nothing_free(refused: OperationResult | None) -> OperationResult:
    """Nothing of what was shown can be had, as was said of each."""
    assert refused is not None
    said = refused.details.get("answer")
    told: dict[str, object] = dict(said) if isinstance(said, Mapping) else {}
    answer = {**told, "ok": False, "error": f"nothing_to_claim|{told.get('error')}"}
    return replace(refused, details={**refused.details, "answer": answer})


def heard(answer: Answer) -> str:
    """What an answer says to the history: `answer`, `unknown` what happened, or `nothing` did."""
    if "unable" in answer.said:  # the driver never asked
        return "nothing"
    if answer.ok:
        return "answer"
    if not answer.said or answer.said.get("happened") == "unknown":
        return "unknown"  # whatever it was, nobody told
    about_nothing = ("system", "server_down", "no_space", "server_running")
    return "nothing" if answer.error in about_nothing else "answer"
