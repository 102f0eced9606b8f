"""The bugs that the three boards can be asked to have; `longboat.plants` adds them to its table.

Plain rows, because that table's own type cannot be imported from here: name, what it does and how
it is reached, kind, where it was seen, and on which boards it works. "Shortest:" needs no luck;
"Found by:" needs a sweep over crash points or over the order of system calls.
"""

from __future__ import annotations

_KNOWN = "a promise of task boards"
_FILES = "observed in a real file-based board"
_RACE = "race conditions"
_STATE = "state corruption"
_CLAIMS = "claim and lease"
_FENCE = "fencing"
_GUARDS = "reliability"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "board-without-lock",
        "The board is read, changed and written without the lock, so the last writer wins. "
        "Found by: preempt sweep of Claim against Claim",
        _RACE,
        f"{_KNOWN}; crewAI#6125, Agent-Bridge#16",
        "A",
    ),
    (
        "lock-dropped-before-write",
        "The lock is given up between reading and writing. "
        "Found by: preempt sweep of Claim against Claim",
        _RACE,
        f"{_KNOWN}; {_FILES}",
        "A",
    ),
    (
        "lock-file-removed",
        "The lock file is removed after use, so two processes lock two files of the same name. "
        "Found by: preempt sweep of three Claims",
        _RACE,
        _KNOWN,
        "A",
    ),
    (
        "board-in-place",
        "The board is overwritten in place. Found by: crash sweep of Add",
        _STATE,
        f"{_FILES}; gascity#1933",
        "A",
    ),
    (
        "board-renamed-unsynced",
        "The new board is renamed over the old one before it is on the disk. "
        "Found by: power-loss sweep of Add",
        _STATE,
        _KNOWN,
        "A",
    ),
    (
        "wall-clock-leases",
        "Leases go by the clock of each process. Shortest: Init Add Claim(w1) "
        "Recover[clock +1 h] AssertOwner(w1)",
        _CLAIMS,
        f"{_KNOWN}, clock skew",
        "A",
    ),
    (
        "backup-of-corrupt",
        "An unreadable board is backed up by every command that meets it, until no good backup is "
        "left. Shortest: Init Add Add CorruptState Add Add Add Repair",
        _STATE,
        "claude-code#29143",
        "A",
    ),
    (
        "second-copy-skipped",
        "A change is answered with one copy of it on the disk; the second is made by the next "
        "command. Shortest: Init Add Add CorruptState Repair",
        _STATE,
        f"{_FILES}; its backups are one change old",
        "A",
    ),
    (
        "repair-to-last-start",
        "A repair takes the newest whole copy and forgets the changes after it. Shortest: Init Add "
        "Restart Add Stop CorruptState Start Repair",
        _STATE,
        f"{_FILES}; its repair goes back to an old backup",
        "BC",
    ),
    (
        "stale-claim-kept",
        "The claim of a dead worker is never returned. Shortest: Init Add Claim(w1) "
        "WaitForLease Recover",
        _CLAIMS,
        f"{_KNOWN}; {_FILES}",
        "ABC",
    ),
    (
        "heartbeat-ignored",
        "Heartbeats are answered but not noted, so a live worker is robbed. Shortest: Init Add "
        "Claim(w1) Heartbeat(w1) for longer than a lease, Recover",
        _CLAIMS,
        f"{_KNOWN}; {_FILES}",
        "ABC",
    ),
    (
        "completion-by-stranger",
        "Anybody may complete anything. Shortest: Init Add Claim(w1) ExpectError(Complete(w2))",
        _CLAIMS,
        _KNOWN,
        "ABC",
    ),
    (
        "double-completion",
        "A second completion by the owner is taken and counted. Shortest: Init Add Claim Complete "
        "ExpectError(Complete)",
        _CLAIMS,
        f"{_KNOWN}; AI-Employee#695",
        "ABC",
    ),
    (
        "cycle-accepted",
        "Tasks that wait for each other are added. Shortest: Init ExpectError(AddBatch(a<-b, b<-a))",
        "dependencies",
        f"{_KNOWN}; observed in a real orchestrator",
        "ABC",
    ),
    (
        "dependencies-ignored",
        "A task can be claimed before what it depends on is done. Shortest: Init Add(a) "
        "Add(b, depends a, priority 1) Claim",
        "dependencies",
        f"{_KNOWN}; bernstein#3254",
        "ABC",
    ),
    (
        "waits-for-what-is-done",
        "A task that is added behind one that is done is never let go. Shortest: Init Add(a) Claim(w1) "
        "Complete(a) Add(b, depends a) Settle",
        "dependencies",
        "observed in a public board (claimd 0.2.0)",
        "ABC",
    ),
    (
        "two-leaders",
        "An election does not look at the lease of the present leader. Shortest: Init Elect(n1) "
        "ExpectError(Elect(n2))",
        _FENCE,
        f"{_KNOWN}, split brain",
        "ABC",
    ),
    (
        "old-token-accepted",
        "A write is taken whatever its token. Shortest: Init Elect(n1) StepDown(n1) Elect(n2) "
        "ExpectError(WriteAsLeader(n1, 1))",
        _FENCE,
        f"{_KNOWN}, split brain",
        "ABC",
    ),
    (
        "token-reused-after-restart",
        "The fencing token starts again with the process. Shortest: Init Elect(n1) Restart Elect(n2)",
        _FENCE,
        f"{_KNOWN}, split brain",
        "BC",
    ),
    (
        "restore-lowers-epoch",
        "A restore brings old epochs back, so an old owner is the owner again. Shortest: Init Add "
        "Checkpoint(a) Claim(w1) Restore(a) Claim(w2)",
        _FENCE,
        _KNOWN,
        "ABC",
    ),
    (
        "restore-loses-claimed",
        "A restore drops the tasks that were claimed at the checkpoint. Shortest: Init Add "
        "Claim Checkpoint(a) Restore(a) List",
        "recovery failures",
        f"{_KNOWN}, checkpoint/restore",
        "ABC",
    ),
    (
        "checkpoint-skips-done",
        "A checkpoint keeps open tasks only. Shortest: Init Add Claim Complete Checkpoint(a) "
        "Restore(a) List",
        "recovery failures",
        f"{_KNOWN}, checkpoint/restore",
        "ABC",
    ),
    (
        "checkpoint-in-place",
        "A checkpoint is overwritten in place and not synced. "
        "Found by: crash sweep of a second Checkpoint(a)",
        _STATE,
        f"{_KNOWN}; {_FILES}",
        "ABC",
    ),
    (
        "silent-empty-start",
        "An unreadable board is taken for an empty one. Shortest: Init Add Add CorruptState List",
        _STATE,
        f"{_KNOWN}; beads#2672",
        "ABC",
    ),
    (
        "disk-full-acknowledged",
        "A write that found no space is answered as done. Shortest: Init FillDisk Add List",
        _STATE,
        f"{_KNOWN}; observed in a real broker; gascity#2158",
        "ABC",
    ),
    (
        "batch-half-added",
        "A batch with a mistake is added up to the mistake. Shortest: Init "
        "ExpectError(AddBatch(good, bad)) List",
        "dependencies",
        _KNOWN,
        "ABC",
    ),
    (
        "cancel-of-done",
        "A task that is done can be cancelled. Shortest: Init Add Claim Complete ExpectError(Cancel)",
        _CLAIMS,
        _KNOWN,
        "ABC",
    ),
    (
        "newest-first",
        "The newest task is claimed first, whatever its priority. Shortest: Init Add Add Claim",
        "starvation",
        "gascity-packs#272",
        "ABC",
    ),
    (
        "retry-without-backoff",
        "A failed task can be claimed again at once. Shortest: Init Add Claim Fail "
        "ExpectError(Claim)",
        _GUARDS,
        f"{_KNOWN}; buzz#5557",
        "ABC",
    ),
    (
        "max-attempts-ignored",
        "A task is tried for ever. Shortest: Init Add(max-attempts 1) Claim Fail List",
        _GUARDS,
        f"{_KNOWN}; RepoLens#109",
        "ABC",
    ),
    (
        "limiter-off-by-one",
        "The rate limit lets one more through. Shortest: Init[rate_limit 0.01, rate_burst 2] "
        "Claim Claim ExpectError(Claim)",
        _GUARDS,
        _KNOWN,
        "ABC",
    ),
    (
        "limiter-shared-by-prefix",
        "Workers whose names begin alike share one rate limit. Shortest: Init[rate_limit 0.01, "
        "rate_burst 1] Add Add Claim(w-1) Claim(w-2)",
        _GUARDS,
        f"{_KNOWN}; agent-orchestrator#1168",
        "ABC",
    ),
    (
        "breaker-never-opens",
        "Failures are not counted. Shortest: Init Add (Claim Fail) three times, ExpectError(Claim)",
        _GUARDS,
        f"{_KNOWN}; egg#2099",
        "BC",
    ),
    (
        "breaker-never-closes",
        "A success while half open does not close the breaker. Shortest: Init Add (Claim Fail) "
        "three times, WaitForBreaker Claim Complete Status",
        _GUARDS,
        _KNOWN,
        "BC",
    ),
    (
        "half-open-lets-all-through",
        "A half-open breaker lets everybody through. Shortest: Init Add (Claim Fail) three times, "
        "WaitForBreaker Claim(w1) ExpectError(Claim(w2))",
        _GUARDS,
        _KNOWN,
        "BC",
    ),
    (
        "memory-leak",
        "Every completion is remembered for ever. Shortest: Init (Add Claim Complete) many times",
        "leaks",
        f"{_KNOWN}; claude-mem#1168",
        "BC",
    ),
    (
        "descriptor-leak",
        "Every completion leaves a descriptor open. Shortest: Init (Add Claim Complete) many times",
        "leaks",
        f"{_KNOWN}; claude-mem#1168",
        "BC",
    ),
    (
        "answer-before-commit",
        "The broker answers before it commits. Shortest: Init Add KillBroker List",
        _STATE,
        _KNOWN,
        "B",
    ),
    (
        "acknowledged-before-journal",
        "The crew answers before its journal has the change. Shortest: Init Add KillCrew Serve List",
        _STATE,
        _KNOWN,
        "C",
    ),
    (
        "second-crew-allowed",
        "The lock of a living crew stops nobody. Shortest: Serve ExpectError(Serve)",
        "duplicate daemon",
        "catalyst#3651",
        "C",
    ),
    (
        "crew-resumes-running",
        "A new crew gives out tasks whose agents of before are still at work. Shortest: Serve "
        "Add[slow] WaitForInProgress KillCrew Serve WaitForInProgress",
        "double run",
        "AI-Employee#695",
        "C",
    ),
    (
        "crew-ignores-dag",
        "The crew gives out tasks in the order of adding. Shortest: Serve AddBatch(a<-b, b) "
        "WaitForDone",
        "dependencies",
        _KNOWN,
        "C",
    ),
    (
        "dead-agent-kept-fresh",
        "The crew beats on for an agent that crashed, so its task is never returned. Shortest: "
        "Serve Add[crash] WaitForSettled",
        _CLAIMS,
        _KNOWN,
        "C",
    ),
    (
        "agents-end-limited",
        "A rate limit holds up what the crew notes about its own agents, and what was not noted is "
        "never said again. Shortest: Init[rate_limit 2, rate_burst 2] AddBatch WaitForSettled",
        _CLAIMS,
        _KNOWN,
        "C",
    ),
    (
        "agents-end-lost",
        "What became of a task while the disk was full is never said again, and its agent's next "
        "claims keep it alive for ever. Shortest: Serve Add WaitForAgent FillDisk Settle",
        _CLAIMS,
        _KNOWN,
        "C",
    ),
    (
        "dead-agent-reported-healthy",
        "status shows an agent that crashed as alive. Shortest: Serve Add[crash] WaitForFailed "
        "Status",
        "recovery failures",
        "catalyst#3651",
        "C",
    ),
    (
        "completion-frees-worker",
        "A completion takes its worker for idle: everything else that it holds is given back. "
        "Shortest: Init Add(a) Add(b) Claim(w1) Claim(w1) Complete(w1, a)",
        _CLAIMS,
        _KNOWN,
        "ABC",
    ),
    (
        "output-cut",
        "An output is kept up to its thousandth character, without a word. Shortest: Init Add Claim "
        "Complete(size=2000)",
        _STATE,
        f"{_KNOWN}, large payloads",
        "ABC",
    ),
    (
        "failure-not-passed-on",
        "What waits for a task that failed waits for ever. Shortest: Init Add(a, max_attempts=1) "
        "Add(b<-a) Claim Fail",
        "dependencies",
        f"{_KNOWN}, deadlocks",
        "ABC",
    ),
    (
        "lock-wait-gives-up",
        "Whoever has waited for the lock for a fifth of a second goes on without it. Shortest: Init "
        "Add HoldBoardLock(Claim)",
        _RACE,
        _KNOWN,
        "A",
    ),
    (
        "named-claim-steals",
        "A claim that names its task gets it, whoever holds it. Shortest: Init Add SpawnWorker[slow] "
        "WaitForInProgress Claim(w2, a) WaitForSettled",
        _CLAIMS,
        f"{_KNOWN}, competing claims",
        "ABC",
    ),
    (
        "release-only-before-start",
        "What was begun cannot be given back. Shortest: Init Add Claim Start Release",
        _CLAIMS,
        _KNOWN,
        "ABC",
    ),
    (
        "start-twice",
        "A task that is at work can be begun again. Shortest: Init Add Claim Start "
        "ExpectError(Start)",
        _CLAIMS,
        _KNOWN,
        "ABC",
    ),
    (
        "refusal-unclassed",
        "A missing dependency is refused as `error`, which no program can tell from a fault. "
        "Shortest: Init ExpectError(Add(a<-nobody))",
        "wrong answer",
        _KNOWN,
        "ABC",
    ),
    (
        "crash-on-missing-dependency",
        "A missing dependency ends in a traceback. Shortest: Init ExpectError(Add(a<-nobody))",
        "crash",
        _KNOWN,
        "A",
    ),
    (
        "claim-waits-for-work",
        "A claim on an empty board waits for work with the lock in its hand. Shortest: Init Claim",
        "stuck",
        f"{_KNOWN}, deadlocks",
        "A",
    ),
    (
        "stale-claim-failed",
        "What a dead worker held is failed for good at once. Shortest: Init Add "
        "SpawnWorker[claim-and-die] SpawnWorker Settle Verify",
        _CLAIMS,
        f"{_KNOWN}, killed agents",
        "ABC",
    ),
    (
        "unknown-setting-ignored",
        "A setting that there is not is passed over in silence, as a misspelt one would be. "
        "Shortest: Init WrongSetting(unknown)",
        _GUARDS,
        "a mutant of longboat that nothing found",
        "A",
    ),
    (
        "old-copy-served",
        "An old file that somebody put back is served as if it were the newest. Shortest: Init AddTask "
        "CorruptBoard(stale) List",
        _FILES,
        "a mutant of longboat that nothing found",
        "A",
    ),
    (
        "bad-lines-skipped",
        "Lines of the journal that cannot be read are passed over. Shortest: Up AddTask "
        "AddTask AddTask Down CorruptBoard(middle) Up",
        _FILES,
        "a mutant of longboat that nothing found",
        "C",
    ),
    (
        "checkpoint-sum-ignored",
        "A restore takes a checkpoint whose checksum does not fit. Shortest: "
        "Init AddTask Checkpoint DamageFile(flip, checkpoint) Restore",
        _STATE,
        _FILES,
        "ABC",
    ),
    (
        "repair-forgets-leader",
        "A repair brings the tasks back and forgets which tokens leaders have had. Shortest: "
        "Init Elect Heartbeat CorruptBoard Repair Elect",
        _FENCE,
        "a mutant of longboat that nothing found",
        "ABC",
    ),
    (
        "rest-told-in-ms",
        "Who failed is told a rest that is a thousand times too long. Shortest: "
        "Init AddTask Claim Fail",
        _GUARDS,
        _KNOWN,
        "ABC",
    ),
    (
        "breaker-called-closed",
        "Status calls the circuit breaker closed, also when it lets nobody through. Shortest: "
        "Up AddBatch Claim Fail Claim Fail Claim Fail Status",
        _GUARDS,
        _KNOWN,
        "BC",
    ),
)
