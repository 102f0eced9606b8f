"""The contract's model against longboat's own pure core: no alarm on a healthy board, one on each bug."""

from __future__ import annotations

from dataclasses import replace

import pytest
from board_simulator import Simulator, finished, simulate

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.generate import OWN_TURNS
from mutiny.contracts.board.profile import BoardProfile
from mutiny.kit.operations import Reset, Sleep

FILES = BoardProfile(sure_calls=6)
SERVER = BoardProfile(breaker=True)
NEEDS_MORE = (
    *("clock_skew", "corrupt_state", "twice_corrupt", "poisoned_backup", "stale_state"),
    *("held_lock", "workers"),
    *(
        "dying_worker",
        "killed_worker",
        "slow_worker",
        "paused_worker",
        "byzantine",
        "disk_full",
        "skewed_worker",
    ),
)
"""Scenarios that need files, faults or processes."""
PLANTS = {
    "stale-claim-kept": ("stale_claim", "no_stuck_claim"),
    "heartbeat-ignored": ("live_worker", "live_worker_kept"),
    "completion-by-stranger": ("ownership", "only_owner_completes"),
    "double-completion": ("ownership", "no_double_effect"),
    "cycle-accepted": ("cycles", "cycles_refused"),
    "dependencies-ignored": ("dependencies", "dependencies_respected"),
    "waits-for-what-is-done": ("behind_what_is_done", "all_settle"),
    "two-leaders": ("one_leader", "one_leader"),
    "old-token-accepted": ("one_leader", "old_token_refused"),
    "restore-lowers-epoch": ("restore_fences", "tokens_grow"),
    "restore-loses-claimed": ("checkpoint", "checkpoint_exact"),
    "checkpoint-skips-done": ("checkpoint", "checkpoint_exact"),
    "batch-half-added": ("batch_atomic", "batch_is_atomic"),
    "cancel-of-done": ("ownership", "terminal_is_terminal"),
    "newest-first": ("priority", "priority_respected"),
    "retry-without-backoff": ("retry_backoff", "backs_off"),
    "max-attempts-ignored": ("retry_returns", "attempts_bounded"),
    "limiter-off-by-one": ("limiter", "rate_limit_holds"),
    "limiter-shared-by-prefix": ("limiter", "rate_limit_holds"),
    "breaker-never-opens": ("breaker_opens", "breaker_opens"),
    "breaker-never-closes": ("breaker", "breaker_closes"),
    "half-open-lets-all-through": ("breaker", "breaker_half_opens"),
}


def scenarios(profile: BoardProfile) -> list[str]:
    return [name for name in BoardContract(profile).scenarios if name not in NEEDS_MORE]


@pytest.mark.parametrize("name", scenarios(SERVER))
def test_a_healthy_board_gives_no_alarm(name: str) -> None:
    assert simulate(BoardContract(SERVER).scenarios[name], SERVER) is None


@pytest.mark.parametrize("profile", [FILES, SERVER], ids=["files", "breaker"])
def test_no_explored_sequence_alarms_on_a_healthy_board(profile: BoardProfile) -> None:
    contract = BoardContract(profile)
    for seed in range(15):
        found = simulate(finished(contract.generate(seed, 40)), profile, contract)
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("plant", PLANTS)
def test_every_plant_of_the_core_is_found_by_its_scenario(
    plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, rule = PLANTS[plant]
    monkeypatch.setattr("longboat.planting._ACTIVE", frozenset({plant}))
    broken = simulate(BoardContract(SERVER).scenarios[scenario], SERVER)
    assert broken is not None
    assert broken[1].rule == f"board.{rule}"


def test_a_sequence_is_a_function_of_its_seed() -> None:
    contract = BoardContract(FILES)
    assert contract.generate(7, 30) == contract.generate(7, 30)
    assert contract.generate(7, 30) != contract.generate(8, 30)


def test_explored_sequences_are_plausible_and_end_in_recovery() -> None:
    contract = BoardContract(FILES)
    for seed in range(20):
        sequence = contract.generate(seed, 30)
        assert contract.plausible(sequence, ())
        assert isinstance(sequence[-1], op.Settle)
        assert len(sequence) >= 31


def test_nonsense_is_not_run() -> None:
    contract = BoardContract(FILES)
    begin = (Reset(), op.Init())
    assert not contract.plausible((op.Init(),), ())
    assert not contract.plausible((Reset(), op.AddTask("a")), ())
    assert not contract.plausible((*begin, op.AssertStatus("a", "done")), ())
    assert not contract.plausible((*begin, op.KillWorker("w")), ())
    assert contract.plausible((*begin, op.AddTask("a"), op.Claim("w")), ())


def test_simpler_forms_are_simpler() -> None:
    sequence = (
        Reset(),
        op.Init(),
        op.AddTask("a", 1, (), None, 100),
        op.Claim("w2"),
        op.Claim("w1"),
    )
    forms = dict(BoardContract().simpler(sequence))
    assert op.Claim("w1") not in forms["workers"]
    assert op.AddTask("a") not in forms["tasks"]


def test_a_name_that_the_board_would_give_may_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, nobody ever added a task without a name."""
    profile = replace(SERVER, gives_names="task-{}")
    sequence = BoardContract(profile).scenarios["names_given"]
    assert simulate(sequence, profile) is None
    numbers = "longboat.board.dependencies._name"
    monkeypatch.setattr(numbers, lambda ledger, wanted: {new.id or "task-2": new for new in wanted})
    broken = simulate(sequence, profile)
    assert broken is not None
    assert isinstance(broken[0], op.AddUnnamed)


def test_who_is_refused_renews_no_other_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, nobody who was refused asked again while the leader's lease ran out."""
    sequence = BoardContract(SERVER).scenarios["refused_renews_nothing"]
    said = Simulator.say

    def renewing(board: Simulator, operation: op.Elect) -> dict[str, object]:
        answer = said(board, operation)
        board.leader_beat = board.now if isinstance(operation, op.Elect) else board.leader_beat
        return answer

    monkeypatch.setattr(Simulator, "say", renewing)
    broken = simulate(sequence, SERVER)
    assert broken is not None
    assert broken[1].rule == "board.serves_legal"


def test_a_renewal_that_renews_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, no scenario went on beyond the lease of the election."""
    monkeypatch.setattr("board_simulator.core.renews", lambda command: command.verb == "elect")
    broken = simulate(BoardContract(SERVER).scenarios["leader_renews"], SERVER)
    assert broken is not None
    assert broken[1].rule == "board.one_leader"


def test_exploration_tells_agents_of_the_boards_own_what_to_do() -> None:
    contract = BoardContract(replace(SERVER, server=True, works=True))
    sequences = [contract.generate(seed, 40) for seed in range(8)]
    told = {one.turn for each in sequences for one in each if isinstance(one, op.Behave)}
    assert len(told) > 2
    assert "hang" not in told
    assert "stays" in OWN_TURNS


def test_exploration_waits_for_half_a_lease() -> None:
    """Two halves are longer than one lease: what is said in between must not count for somebody else."""
    half_s = round(FILES.past(FILES.figures.leader_lease_s) / 2, 3)
    assert half_s < FILES.figures.leader_lease_s < 2 * half_s
    sequences = [BoardContract(FILES).generate(seed, 40) for seed in range(12)]
    waits = [one.seconds for each in sequences for one in each if isinstance(one, Sleep)]
    assert half_s in waits
