"""Boards under faults: damaged files, full disks, workers that die or lie, servers that are killed."""

from __future__ import annotations

from mutiny.contracts.board.operations import (
    AddBatch,
    AddTask,
    AssertOwner,
    AssertStatus,
    Behave,
    Claim,
    Complete,
    Configure,
    CorruptBoard,
    Down,
    Elect,
    Heartbeat,
    HoldBoardLock,
    Init,
    KillAgent,
    KillServer,
    KillWorker,
    List,
    PauseWorker,
    Recover,
    Release,
    Repair,
    RestartServer,
    Settle,
    SpawnWorker,
    StartSecondServer,
    Status,
    StepDown,
    StopWorker,
    Up,
    Verify,
    WaitForAgent,
    WaitForSettled,
    WaitForStatus,
    WriteAsLeader,
)
from mutiny.kit.faults import FillDisk
from mutiny.kit.operations import ExpectError, Heal, Reset
from mutiny.model.operation import Operation

Sequence = tuple[Operation, ...]
BEGIN: Sequence = (Reset(), Init(), Up())

CORRUPT_STATE: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    Claim("w1"),
    Complete("w1", "a"),
    Heartbeat("w1"),
    CorruptBoard("garbage"),
    ExpectError(Claim("w1")),
    ExpectError(AddTask("c")),
    Repair(),
    List(),
    Claim("w2"),
    Settle(),
)

TWICE_CORRUPT: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    CorruptBoard("truncate"),
    ExpectError(Claim("w1")),
    ExpectError(List()),
    Repair(),
    AddTask("c"),
    CorruptBoard("delete"),
    ExpectError(Claim("w1")),
    Repair(),
    Settle(),
)

POISONED_BACKUP: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    CorruptBoard("garbage"),
    ExpectError(AddTask("c")),
    ExpectError(AddTask("c")),
    ExpectError(AddTask("c")),
    ExpectError(AddTask("c")),
    Repair(),
    List(),
    Settle(),
)

STALE_STATE: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    Claim("w1"),
    Complete("w1", "a"),
    CorruptBoard("stale"),
    Claim("w2"),
    Repair(),
    List(),
    Claim("w2"),
    Settle(),
)

DISK_FULL: Sequence = (
    *BEGIN,
    AddTask("a"),
    FillDisk(during=AddTask("b")),
    FillDisk(during=Claim("w1")),
    List(),
    AddTask("c"),
    Claim("w2"),
    Settle(),
)

HELD_LOCK: Sequence = (
    *BEGIN,
    AddTask("a"),
    HoldBoardLock(seconds=0.5, during=Claim("w1")),
    Complete("w1", "a"),
    Settle(),
)

WORKERS: Sequence = (
    *BEGIN,
    AddBatch(("a", "b:a", "c:a", "d:b,c", "e")),
    SpawnWorker("w", count=2),
    WaitForSettled(),
    StopWorker("w"),
    Verify("all tasks are done"),
    Verify("no task is completed twice"),
    Settle(),
)

DYING_WORKER: Sequence = (
    *BEGIN,
    AddBatch(("a", "b")),
    SpawnWorker("dying", "claim-and-die"),
    WaitForStatus("a", "claimed"),
    SpawnWorker("w"),
    Settle(),
    Verify("all tasks are done"),
    StopWorker("w"),
    Settle(),
)

KILLED_WORKER: Sequence = (
    *BEGIN,
    AddBatch(("a", "b")),
    SpawnWorker("w1", "slow:5000"),
    WaitForStatus("a", "in_progress"),
    KillWorker("w1"),
    SpawnWorker("w2"),
    Settle(),
    StopWorker("w2"),
    Verify("all tasks are done"),
    Settle(),
)

SLOW_WORKER: Sequence = (
    *BEGIN,
    AddTask("a"),
    SpawnWorker("slow", "slow:2000"),
    WaitForStatus("a", "in_progress"),
    SpawnWorker("eager"),
    Settle(),
    StopWorker("eager"),
    StopWorker("slow"),
    Verify("no task is completed twice"),
    Settle(),
)

THIEF: Sequence = (
    *BEGIN,
    AddTask("a"),
    SpawnWorker("slow", "slow:1500"),
    WaitForStatus("a", "in_progress"),
    Claim("thief", "a"),
    WaitForSettled(),
    StopWorker("slow"),
    Settle(),
)

PAUSED_WORKER: Sequence = (
    *BEGIN,
    AddTask("a"),
    SpawnWorker("w1", "slow:1000"),
    WaitForStatus("a", "in_progress"),
    PauseWorker("w1", 1.6),
    SpawnWorker("w2"),
    Settle(),
    StopWorker("w1"),
    StopWorker("w2"),
    Verify("no task is completed twice"),
    Settle(),
)

SKEWED_WORKER: Sequence = (
    Reset(),
    Configure("lease_s", 20),
    Init(),
    Up(),
    AddBatch(("a", "b")),
    SpawnWorker("steady", "slow:1500"),
    WaitForStatus("a", "in_progress"),
    SpawnWorker("early", "skewed:3600"),
    WaitForSettled(),
    StopWorker("early"),
    StopWorker("steady"),
    Verify("no task is completed twice"),
    Settle(),
)

BYZANTINE: Sequence = (
    *BEGIN,
    AddBatch(("a", "b", "c")),
    SpawnWorker("good", "slow:300"),
    SpawnWorker("bad", "stranger"),
    SpawnWorker("eager", "double"),
    Settle(),
    StopWorker("good"),
    StopWorker("bad"),
    StopWorker("eager"),
    Verify("no task is completed twice"),
    Verify("all tasks are done"),
    Settle(),
)

SERVER_KILL: Sequence = (
    *BEGIN,
    AddTask("a"),
    KillServer(after=AddTask("b", depends=("a",))),
    Up(),
    KillServer(after=Claim("w1")),
    Up(),
    AssertOwner("a", "w1"),
    Complete("w1", "a"),
    RestartServer(),
    AssertStatus("b", "available"),
    Claim("w2"),
    Complete("w2", "b"),
    Settle(),
    Down(),
)

LEASE_OVER_RESTART: Sequence = (
    Reset(),
    Configure("lease_s", 20),
    Init(),
    Up(),
    AddTask("a"),
    Claim("w1"),
    RestartServer(),
    Recover(),
    AssertOwner("a", "w1"),
    ExpectError(Claim("w2", "a")),
    KillServer(after=Heartbeat("w1")),
    Up(),
    Recover(),
    AssertOwner("a", "w1"),
    Complete("w1", "a"),
    Settle(),
)

SECOND_SERVER: Sequence = (
    *BEGIN,
    AddTask("a"),
    ExpectError(StartSecondServer()),
    Claim("w1"),
    Complete("w1", "a"),
    Settle(),
)

CORRUPT_STORE: Sequence = (
    *BEGIN,
    AddTask("a"),
    AddTask("b"),
    Claim("w1"),
    RestartServer(),
    Complete("w1", "a"),
    Down(),
    CorruptBoard("garbage"),
    Up(),
    Claim("w1"),
    AddTask("c"),
    Repair(),
    List(),
    Claim("w2"),
    Settle(),
)

FULL_STORE: Sequence = (
    *BEGIN,
    AddTask("a"),
    Down(),
    FillDisk(lasting=True),  # from here on the board is on a disk of its own
    ExpectError(AddTask("nobody-hears")),
    Heal(),
    Up(),
    FillDisk(lasting=True),
    AddTask("b", size=50000),
    Claim("w1"),
    Heal(),
    List(),
    AddTask("c"),
    Claim("w2"),
    Settle(),
)

TOKENS_OVER_RESTART: Sequence = (
    *BEGIN,
    AddTask("a"),
    Elect("n1"),
    Claim("w1"),
    Release("w1", "a"),
    KillServer(),
    Up(),
    Claim("w2"),
    ExpectError(Complete("w1", "a")),
    StepDown("n1"),
    Elect("n2"),
    ExpectError(WriteAsLeader("n1")),
    WriteAsLeader("n2"),
    Settle(),
)

AGENTS: Sequence = (
    *BEGIN,
    Behave("slow:500"),  # so that nobody is done before his neighbour has begun
    AddBatch(("b:a", "a", "c:b", "d")),
    WaitForSettled(),
    Verify("all tasks are done"),
    Verify("no task is completed twice"),
    Status(),
    Settle(),
)

AGENT_KILLED: Sequence = (
    *BEGIN,
    Behave("slow:5000"),
    AddTask("a"),
    WaitForAgent("a"),
    Behave(),
    KillAgent("a"),
    WaitForSettled(),
    Verify("all tasks are done"),
    Settle(),
)

AGENT_EXITS: Sequence = (
    *BEGIN,
    Behave("exit"),
    AddTask("a", max_attempts=1),
    WaitForStatus("a", "failed"),
    Status(),
    Behave(),
    AddTask("b"),
    Settle(),
    AssertStatus("b", "done"),
)

CREW_KILLED: Sequence = (
    *BEGIN,
    Behave("slow:5000"),
    AddTask("a"),
    WaitForAgent("a"),
    KillServer(),
    Up(),
    WaitForAgent("a", runs=2),
    Behave(),
    Settle(),
)

CREW_STOPPED: Sequence = (
    *BEGIN,
    Behave("slow:5000"),
    AddTask("a"),
    WaitForAgent("a"),
    Down(),
    Behave(),
    Up(),
    Settle(),
    Verify("all tasks are done"),
)

DRILLS: dict[str, Sequence] = {
    "corrupt_state": CORRUPT_STATE,
    "twice_corrupt": TWICE_CORRUPT,
    "poisoned_backup": POISONED_BACKUP,
    "stale_state": STALE_STATE,
    "disk_full": DISK_FULL,
    "held_lock": HELD_LOCK,
    "workers": WORKERS,
    "dying_worker": DYING_WORKER,
    "killed_worker": KILLED_WORKER,
    "slow_worker": SLOW_WORKER,
    "thief": THIEF,
    "paused_worker": PAUSED_WORKER,
    "skewed_worker": SKEWED_WORKER,
    "byzantine": BYZANTINE,
    "server_kill": SERVER_KILL,
    "lease_over_restart": LEASE_OVER_RESTART,
    "second_server": SECOND_SERVER,
    "full_store": FULL_STORE,
    "corrupt_store": CORRUPT_STORE,
    "tokens_over_restart": TOKENS_OVER_RESTART,
}
"""All of them by name."""
CREW: dict[str, Sequence] = {
    "agents": AGENTS,
    "agent_killed": AGENT_KILLED,
    "agent_exits": AGENT_EXITS,
    "crew_killed": CREW_KILLED,
    "crew_stopped": CREW_STOPPED,
}
"""For a board that has agents of its own: what it gives out, nobody else can claim first."""
NEEDS_SERVER = (
    "full_store",
    "server_kill",
    "second_server",
    "lease_over_restart",
    "tokens_over_restart",
    "corrupt_store",
)
NEEDS_FILES = (
    *("disk_full", "corrupt_state", "twice_corrupt", "poisoned_backup", "stale_state", "held_lock"),
)
