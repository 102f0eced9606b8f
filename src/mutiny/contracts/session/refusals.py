"""The words that a refusal of a session may have."""

from __future__ import annotations

from mutiny.kit.domains import BAD_INPUT

REFUSALS = (
    *("no_home", "no_session", "exists", "unfinished", "running", "not_running", "finished"),
    *("no_checkpoint", "invalid", "all_invalid", "paused", "not_paused", "unhealthy"),
    *("bad_project", "too_many_agents", "busy", "no_space", "no_vote", "system", "model"),
    BAD_INPUT,
)
