"""The words that a refusal may have."""

from __future__ import annotations

from mutiny.kit.domains import BAD_INPUT

REFUSALS = (
    *("not_initialised", "exists", "no_agent", "no_channel", "no_spawn", "not_running"),
    *("not_yours", "not_completed", "timeout", "unreadable", "busy", "no_space", "system"),
    BAD_INPUT,
)
"""`not_completed`: a run that was waited for has ended otherwise."""
