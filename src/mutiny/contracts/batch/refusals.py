"""The words that a refusal of a batch orchestrator may have."""

from __future__ import annotations

from mutiny.kit.domains import BAD_INPUT

REFUSALS = (
    *("no_home", "exists", "no_plan", "bad_plan", "no_run", "no_task", "unfinished", "finished"),
    *("merged", "landing", "needs_force", "at_work", "dirty", "unreadable", "busy", "system"),
    *("engine", "failed", "paused", BAD_INPUT),
)
"""`failed` and `paused` are how a run may end."""
