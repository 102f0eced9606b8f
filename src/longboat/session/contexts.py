"""What an agent has in mind: the messages of its task, and one line for each task before."""

from __future__ import annotations

from longboat.planting import planted
from longboat.session.values import Json

_REMEMBERED = 20
"""Finished tasks that an agent still has in mind."""


def begin(agent: Json) -> None:
    """A new task: what remains of earlier ones are their summaries."""
    agent["context"] = [one for one in agent["context"] if _is_summary(one)][-2 * _REMEMBERED :]


def _is_summary(message: Json) -> bool:
    return isinstance(message["content"], str)


def question(text: str, results: list[Json]) -> Json:
    """What the model is asked; after tools, what they brought."""
    if not results:
        return {"role": "user", "content": [{"type": "text", "text": text}]}
    blocks = [
        {"type": "tool_result", "tool_use_id": one["id"], "content": one["text"][:4000]}
        for one in results
    ]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": text}]}


def answer(text: str, tools: list[Json]) -> Json:
    """What the model has said."""
    blocks: list[Json] = [{"type": "text", "text": text}]
    return {
        "role": "assistant",
        "content": [*blocks, *({"type": "tool_use", **one} for one in tools)],
    }


def add(agent: Json, message: Json) -> None:
    """One more thing in mind."""
    agent["context"].append(message)


def summarise(agent: Json, name: str, text: str) -> None:
    """A job has ended: only this is kept of it."""
    begin(agent)
    agent["context"] += [
        {"role": "user", "content": f"Earlier: {name}"},
        {"role": "assistant", "content": f"Done: {text[:120]}"},
    ]


def compress(agent: Json) -> None:
    """As short as it can be without forgetting the present task: contents go, names stay."""
    short: list[Json] = []
    for message in agent["context"]:
        if _is_summary(message):
            continue
        blocks = [
            _shortened(block)
            for block in message["content"]
            if block["type"] != "tool_use" or not planted("session-calls-forgotten")
        ]
        short.append({**message, "content": blocks})
    agent["context"] = short


def _shortened(block: Json) -> Json:
    match block["type"]:
        case "tool_use":
            given = {key: str(value)[:40] for key, value in block["input"].items()}
            return {**block, "input": given}
        case "tool_result":
            return {**block, "content": block["content"][:80]}
        case _:
            return {**block, "text": block["text"][:200]}
