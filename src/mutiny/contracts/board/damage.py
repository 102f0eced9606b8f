"""What a fault has written into a board's files is the fault's: no promise of the board is broken by it.

Rubbish can be recognised: a board that takes it for an empty one has forgotten what it was given, and
that counts. An old copy, a flipped bit or a part that still reads well cannot be recognised by a board
without sums: then nobody knows what it should be, until a repair or a restore puts something else there.
A board that promises to notice (`notices_damage`) refuses, or says what is true.
"""

from __future__ import annotations

from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.kit import faults
from mutiny.model.operation import Operation, walk

READS_WELL = ("flip", "stale", "append")
"""Damage that may leave a state that reads well and says something else."""


def damage_in(operation: Operation) -> faults.DamageFile | None:
    """The damage that an operation does to a file, if any."""
    for part in walk(operation):
        if isinstance(part, op.CorruptBoard):
            return faults.DamageFile(how=part.how, file="state", seed=part.seed)
        if isinstance(part, faults.DamageFile):
            return part
    return None


def hurt(
    model: BoardModel, damage: faults.DamageFile, seen: BoardObservation
) -> tuple[BoardModel, ...]:
    """The worlds after a damage: the board knows that it is damaged, or it cannot know."""
    if damage.file == "checkpoint":  # it is refused from now on, or still what it was
        return (replace(model, spoiled=model.spoiled | frozenset(model.checkpoints)),)
    if damage.file == "heartbeat":  # a lease may begin anew, but is not over
        return (model.all_blurred(leases_kept=True),)
    # A server that finds another file in the place of its own may end, rather than write into that.
    hit = replace(model, damaged=True, up=model.up | {False} if model.serving else model.up)
    if (
        damage.file != "state"
    ):  # what a file beside the state is good for is the board's own business
        return (hit, replace(hit.all_blurred(), doubted=True))
    if seen.tasks is None and seen.servers != 0:  # it was looked at, and nobody can read it
        return (hit,)
    if model.profile.notices_damage:  # then it says so, or says what is true
        return (hit,)
    rest = damage.how == "truncate" and bool(seen.tasks)
    if damage.how in READS_WELL or rest:
        return (hit, replace(hit.adopt(seen), doubted=True))
    return (hit,)


def mended(model: BoardModel) -> BoardModel:
    """After a repair or a restore that was answered: what is there now the board has put there."""
    return replace(model, damaged=False, doubted=False)
