"""How a batch orchestrator differs from the contract's ideal."""

from __future__ import annotations

from dataclasses import dataclass, field

from mutiny.kit.profile import Limits, TargetProfile


@dataclass(frozen=True)
class BatchLimits(Limits):
    """Seconds that a correct target may take."""

    command_s: float = 30.0


@dataclass(frozen=True, kw_only=True)
class BatchProfile(TargetProfile):
    """What one target promises."""

    limits: BatchLimits = field(default_factory=BatchLimits)
    cost_per_1k: float = 0.002
    """What 1000 tokens cost."""
    run_resumes: bool = False
    """`run` goes on with a run that is not finished, or that it names, where others refuse."""
    own_plan: bool = True
    """A run keeps the plan that it was begun with; otherwise it goes on with whatever was planned since, so
    that nobody can say what is right then.
    """
    folders: bool = False
    """A plan can declare a folder with all that is in it, `docs/**`, and all files of one, `docs/*`."""
    own_commits: bool = False
    """What an agent has committed itself is its work as if it had only been written."""
    adds_up: bool = False
    """What an agent tells of its use in several parts is added up."""
    walled: bool = False
    """From its workspace an agent cannot reach the user's repository."""
    tidy: bool = False
    """The workspaces of a task go when it is merged, and with the files of a run what it has left in the
    repository.
    """
    deletions: bool = False
    """To remove a file is a change that a task must have declared."""
    renames: bool = False
    """To rename a file is a change of both names; a task must have declared both."""
    done_once: bool = False
    """A task that went well and conflicts with nobody is not done again when others of its batch do."""
    forgets_errors: bool = False
    """What went wrong with a task, or with a run, is not told of it any more once it is complete."""
    totals: bool = False
    """What a run is told to have used is what all its tasks have, also those that were left out."""
    shows_kept: bool = False
    """What it shows of a run is what it keeps of it, part by part; it shows a plan as it was given, and the
    lines of a log as they were written.
    """
    neighbours: bool = False
    """It may be at work in several homes of one machine at once."""
    settable: tuple[str, ...] | None = None
    """Knobs that can be set; None: all."""
    moments: tuple[str, ...] = ()
    """Moments of a run that can be told; the target's file fills it in."""
