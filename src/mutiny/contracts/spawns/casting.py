"""How scenarios begin and end: a home with a crew, what people say, and the looks at the end."""

from __future__ import annotations

from mutiny.contracts.spawns.operations import (
    Behave,
    Chain,
    Configure,
    CreateChannel,
    Health,
    Init,
    ListSpawns,
    Register,
    Send,
)
from mutiny.kit.operations import Reset, Settle
from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
PROVIDERS = {
    "prime": "claude",
    "hailot": "claude",
    "sonnelot": "claude",
    "auger": "gemini",
    "sentinel": "codex",
    "zealot": "claude",
}
CREW = ("prime", "hailot")
END: Steps = (Settle(), ListSpawns(), Chain(), Health())


def crew(*agents: str, **does: tuple[str, ...]) -> Steps:
    """A home with a channel and these agents, and what they do."""
    made = (Register(name, PROVIDERS[name]) for name in agents or CREW)
    told = (Behave(name, turns) for name, turns in does.items())
    return (Reset(), Init(), CreateChannel("dev"), *made, *told)


def set_to(**settings: float) -> Steps:
    """Settings from now on."""
    return tuple(Configure(name, value) for name, value in settings.items())


def say(text: str, channel: str = "dev") -> Send:
    """A human posts."""
    return Send(channel, text)
