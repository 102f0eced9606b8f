"""What experiments may say about a counter."""

from __future__ import annotations

from collections.abc import Mapping

from counter_contract.contract import NAME, Init, Show
from mutiny.kit.language import Language
from mutiny.kit.operations import Settle
from mutiny.kit.sentences import Finding, Record, Sentence, Value, told, unknown


def _is(record: Record, values: Mapping[str, Value]) -> Finding:
    if record.seen.error is not None:
        return unknown(record.seen.error)
    return told(record.seen.count == values["number"], f"the count is {record.seen.count}")


LANGUAGE = Language(
    NAME,
    (Sentence("The count is {number:number}", _is, "At the moment of asking.", momentary=True),),
    setup=(Init(),),
    probe=Show(),
    settle=(Settle(),),
)
