"""What workers can be made to get wrong about processes and answers: daemon, sessions, agents, commands.

Plain rows for `longboat.plants`: name, what it does and how it is reached, kind, where it was seen.
"""

from __future__ import annotations

_KNOWN = "a known class of failure"
_INVARIANTS = "an invariant of the state"
_LLMC = "observed in a real orchestrator of this kind"
_IN_REVIEW = "Init Up Add WaitForIdle Start WaitForNeedsReview"
_AT_WORK = "Init Up Add WaitForIdle Start[slow]"

ROWS: tuple[tuple[str, str, str, str], ...] = (
    (
        "model-forgotten",
        "Agents are started with whatever model is the default. Shortest: Init Up Add",
        "zombie processes",
        "a bug written by hand that nothing found",
    ),
    (
        "only-the-session-is-ended",
        "An agent's own session is ended, and what it has started in another one lives on. Shortest: "
        "Init Up Add WaitForIdle Start[leave-child] WaitForNeedsReview Down",
        "zombie processes",
        "a mutant of longboat that nothing found; agent-orchestrator#3537",
    ),
    (
        "restarted-without-pause",
        "An agent that dies at once is started again at once, every time. Shortest: Init Up Add "
        "WaitForIdle Start[slow, exit-at-start] WaitForPrompt KillAgent WaitForState(error)",
        "zombie processes",
        "a mutant of longboat that nothing found",
    ),
    (
        "settings-coerced",
        "A setting that is no number is made one: `true` is 1. "
        "Shortest: Init WrongSetting(Status, boolean)",
        "wrong answers",
        "a mutant of longboat that nothing found",
    ),
    (
        "worker-stuck-offline-after-tmux-server-death",
        "Workers go offline with the tmux server and are never started again. Shortest: "
        "Init Up Add WaitForIdle KillTmuxServer WaitForIdle",
        "recovery failures",
        "agent-orchestrator#695",
    ),
    (
        "session-without-agent",
        "After an agent died its session is made again with a shell in it, and counts as healthy. "
        "Shortest: Init Up Add WaitForIdle KillAgent",
        "zombie processes",
        "agent-orchestrator#2702",
    ),
    (
        "duplicate-agent",
        "A restarted daemon starts a second agent beside the one that lives. Shortest: "
        "Init Up Add WaitForIdle KillDaemon Up",
        "zombie processes",
        "agent-orchestrator#356, agent-orchestrator#3537",
    ),
    (
        "orphan-session-after-nuke",
        "nuke forgets the session, its agent lives on in a deleted worktree. Shortest: "
        "Init Up Add WaitForIdle Nuke",
        "zombie processes",
        f"{_KNOWN}; agent-orchestrator#3537",
    ),
    (
        "down-leaves-agents",
        "down stops the daemon and leaves the sessions. Shortest: Init Up Add WaitForIdle Down",
        "zombie processes",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "down-ends-tmux",
        "down ends the tmux server, with the sessions of everybody. Shortest: Init Neighbour Up Down",
        "lost work",
        "overdeck#3539",
    ),
    (
        "session-prefix-match",
        "Sessions are addressed by prefix, so one worker's end is another's too. Shortest: "
        "Init Up Add(alpha) WaitForIdle(alpha) Add(al) WaitForIdle(al)",
        "live agent killed",
        f"{_LLMC}; overdeck#1820",
    ),
    (
        "nuke-ends-all-sessions",
        "nuke ends the whole tmux server. Shortest: "
        "Init Up Add(alpha) Add(beta) WaitForIdle(alpha) WaitForIdle(beta) Nuke(beta)",
        "live agent killed",
        "overdeck#3539",
    ),
    (
        "reaped-on-query-failure",
        "A tmux that does not answer is taken for a dead one, and the agent is ended. Shortest: "
        "Init Up Add WaitForIdle PauseProcess(tmux server)",
        "live agent killed",
        "overdeck PR#2787, agi-cli PR#2650, orch#2913",
    ),
    (
        "live-work-reaped-by-age",
        "An agent without a commit after one second counts as stuck and is ended. Shortest: "
        "Init Up Add WaitForIdle Start[slow:4000] WaitForNeedsReview",
        "live agent killed",
        "aidevops#18090, claude-code#78350",
    ),
    (
        "add-takes-live-worktree",
        "add makes room under the name before it sees that the worker exists. Shortest: "
        "Init Up Add WaitForIdle ExpectError(Add)",
        "live work reaped",
        "claude-code#77268",
    ),
    (
        "stale-pid-trusted",
        "After a restart the agents in the state are believed to live without a look. Shortest: "
        "Init Up Add WaitForIdle KillDaemon KillTmuxSession Up AssertSessionAlive",
        "recovery failures",
        "gastown#1681, agentcad#70",
    ),
    (
        "second-daemon-allowed",
        "The lock of a living daemon stops nobody. Shortest: Init Up ExpectError(Up)",
        "duplicate daemon",
        f"{_LLMC}; catalyst#3651",
    ),
    (
        "up-refused-after-crash",
        "A daemon.json that a killed daemon left behind refuses the next one. Shortest: "
        "Init Up KillDaemon Up",
        "recovery failures",
        f"{_KNOWN}; {_LLMC}",
    ),
    (
        "status-says-healthy-when-daemon-dead",
        "status repeats what the state says instead of asking the kernel. Shortest: "
        "Init Up KillDaemon Status",
        "recovery failures",
        "catalyst#3651",
    ),
    (
        "doctor-lies",
        "doctor --repair reports repairs that it did not do. Shortest: "
        "Init Up KillDaemon Doctor(repair) Doctor",
        "recovery failures",
        _KNOWN,
    ),
    (
        "accept-ignores-status",
        f"accept takes a worker that is still working. Shortest: {_AT_WORK} ExpectError(Accept)",
        "wrong acceptance",
        "bernstein#3254",
    ),
    (
        "error-exit-zero",
        "Rejections are printed but the exit code is 0. Shortest: Init ExpectError(Nuke)",
        "wrong acceptance",
        _KNOWN,
    ),
    (
        "crash-traceback",
        "A message to a worker that does not exist ends in an unhandled exception. Shortest: "
        "Init ExpectError(Message)",
        "crashes",
        _KNOWN,
    ),
    (
        "session-renamed-for-task",
        "start names the session after the task, the state keeps the old name. Shortest: Init Up "
        "Add WaitForIdle Start",
        "zombie processes",
        f"{_INVARIANTS}; overdeck#1820",
    ),
    (
        "review-session-left",
        f"review opens a session for the reader that nobody ever ends. Shortest: {_IN_REVIEW} "
        "Review",
        "zombie processes",
        f"{_KNOWN}; claude-mem#1168",
    ),
    (
        "review-takes-the-terminal",
        "review puts a shell for the reader where the agent was, and takes the shell for the "
        f"agent. Shortest: {_AT_WORK} KillAgent Settle Review",
        "zombie processes",
        f"{_INVARIANTS}; agent-orchestrator#2702",
    ),
    (
        "offline-on-query-failure",
        "A worker whose tmux does not answer counts as offline for good, and its agent works on. "
        "Shortest: Init Up Add WaitForIdle PauseProcess(tmux server)",
        "recovery failures",
        f"{_INVARIANTS}; overdeck PR#2787",
    ),
    (
        "nuke-forgets-by-prefix",
        "nuke forgets every worker whose name begins like the one that was meant. Shortest: Init "
        "Add(alpha) Add(al) Nuke(al)",
        "lost work",
        f"{_KNOWN}; overdeck#1820",
    ),
    (
        "daemon-taken-for-agent",
        "Processes of an agent are known by the home in their environment, which the daemon has, too: "
        "nuke ends it. Shortest: Init Up Add WaitForIdle Nuke",
        "live process killed",
        "agentcad#70, overdeck#3539",
    ),
    (
        "refused-daemon-lives-on",
        "up forks first and looks for another daemon afterwards: it refuses, and its child stays. "
        "Shortest: Init Up ExpectError(Up)",
        "duplicate daemon",
        "catalyst#3651",
    ),
    (
        "up-waits-for-the-other",
        "up waits for the lock of the living daemon instead of asking whether it is free. "
        "Shortest: Init Up ExpectError(Up)",
        "stuck workers",
        "lionagi#1222, claude-sdlc-harness#590",
    ),
    (
        "flag-left-by-down",
        "down does not take back that the daemon runs. Shortest: Init Up Down",
        "state corruption",
        f"{_INVARIANTS}; catalyst#3651",
    ),
    (
        "state-removed-by-down",
        "down tidies the daemon's files away, and the state with them. Shortest: Init Up Add "
        "WaitForIdle Down",
        "state corruption",
        _INVARIANTS,
    ),
    (
        "doctor-trusts-the-flag",
        "doctor believes the state about the daemon instead of asking the kernel. Shortest: Init "
        "Up KillDaemon Doctor",
        "recovery failures",
        "catalyst#3651",
    ),
    (
        "refusal-blames-the-name",
        "accept looks for its worker only among those in review, and denies that any other "
        "exists. Shortest: Init Up Add WaitForIdle ExpectError(Accept)",
        "wrong acceptance",
        _KNOWN,
    ),
    (
        "error-is-only-a-key",
        "start answers with nothing but the name that it did not find. Shortest: Init "
        "ExpectError(Start)",
        "crashes",
        _KNOWN,
    ),
    (
        "second-accept-believed",
        "accept of a worker whose work is merged says yes again: of two at once both are told that "
        f"theirs has merged it. Shortest: {_IN_REVIEW} Parallel(Accept Accept)",
        "race conditions",
        f"{_KNOWN}; agent-orchestrator#1168",
    ),
    (
        "silent-client-blocks",
        "The daemon reads from whoever connects until something is said, and serves nobody meanwhile. "
        "Shortest: Init Up Add WaitForIdle SilentClient Start",
        "stuck work",
        _KNOWN,
    ),
)
