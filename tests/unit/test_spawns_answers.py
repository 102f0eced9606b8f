"""What commands of a spawns target that only look may not say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from test_contract_spawns import CONTRACT, DONE, NOW, ended, message, model, posted

from mutiny.contracts.spawns import operations as op
from mutiny.kit.beliefs import Beliefs
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict


@pytest.mark.parametrize(
    ("lines", "tail", "right"),
    [
        (["1 out: one", "1 out: two"], 20, True),
        (["1 out: two"], 20, False),
        (["1 out: two"], 1, True),
        (["1 out: one"], 1, False),
        (["1 out: one", "1 out: two"], 1, False),
    ],
)
def test_a_log_shows_what_was_said(lines: list[str], tail: int, right: bool) -> None:
    said = {1: message(), 2: posted(2, 1, "one"), 3: posted(3, 1, "two")}
    look = replace(DONE, messages=said, invocations=(ended(posting=2, posts=(2, 3)),))
    asked = op.Logs("prime", "dev", tail)
    result = OperationResult(
        exit_code=0,
        stdout=json.dumps({"ok": True, "spawn": {}, "lines": lines, "events": []}),
        argv=("longboat", "spawn", "logs", "s1"),
    )
    judged = CONTRACT.judge(Beliefs((model(),)), asked, result, look, look, NOW)
    assert (judged.verdict is Verdict.SUCCESS) is right


@pytest.mark.parametrize(
    ("came", "right"),
    [
        (["1 out: one", "1 out: two"], True),
        (["1 out: two", "1 out: one"], True),
        (["1 out: one", "1 out: one", "1 out: two"], False),
        (["1 out: one"], False),
        ([], True),
    ],
    ids=["as it is", "in another order", "one twice", "one never", "it does not stream"],
)
def test_whoever_follows_a_log_is_told_every_line_once(came: list[str], right: bool) -> None:
    said = {1: message(), 2: posted(2, 1, "one"), 3: posted(3, 1, "two")}
    look = replace(DONE, messages=said, invocations=(ended(posting=2, posts=(2, 3)),))
    lines = ["1 out: one", "1 out: two"]
    told = [*({"line": line} for line in came), {"ok": True, "spawn": {}, "lines": lines}]
    result = OperationResult(
        exit_code=0,
        stdout="\n".join(map(json.dumps, told)),
        argv=("longboat", "spawn", "logs", "s1"),
    )
    asked = op.Logs("prime", "dev", follow=True)
    judged = CONTRACT.judge(Beliefs((model(),)), asked, result, look, look, NOW)
    assert (judged.verdict is Verdict.SUCCESS) is right


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({}, True),
        ({"agent": "Prime"}, True),
        ({"agent": "hailot"}, False),
        ({"depth": 1}, False),
        ({"parent": "s7"}, False),
        ({"channel": "ops"}, False),
    ],
)
def test_a_list_says_who_where_how_deep_and_by_whom(changed: dict[str, Any], right: bool) -> None:
    row = {"id": "s1", "status": "completed", "agent": "prime", "channel": "dev", "depth": 0}
    said = {"ok": True, "spawns": [{**row, "parent": None, **changed}]}
    result = OperationResult(exit_code=0, stdout=json.dumps(said))
    judged = CONTRACT.judge(Beliefs((model(),)), op.ListSpawns(), result, DONE, DONE, NOW)
    assert (judged.verdict is Verdict.SUCCESS) is right
