"""The course of a session: phases in order, their votes, their tasks, their gates.

Every decision is saved before anything follows from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.session import gates, votes
from longboat.session.checkpoints import Invalid, file_entry
from longboat.session.desks import Desk, Job
from longboat.session.project import Task, Vote
from longboat.session.saving import Saving, kind_of
from longboat.session.site import Site
from longboat.session.values import Json, Refused
from longboat.session.work import Work

_DONE = ("done", "flagged")


class Owner(Protocol):
    """Who pauses and ends the session."""

    over: bool

    def critical(self, kind: str, text: str) -> None:
        """Pause."""


class Course:
    """Where the session is, and what comes next."""

    def __init__(self, site: Site, work: Work, saving: Saving, owner: Owner) -> None:
        self.site = site
        self._work = work
        self._saving = saving
        self._owner = owner
        self._gate_tries = 0
        self._gating = False
        self._waiting = False
        self._ending = False
        self._left: dict[str, str] = {}
        """Tasks that were taken away, and from whom."""
        self._deadlock_since: dict[str, float] = {}

    # --- beginning --------------------------------------------------------------------------------------

    def resume(self) -> None:
        """At the beginning, and after every restore: what was under way begins anew."""
        state = self.site.state
        for task in state["tasks"].values():
            if task["status"] == "working":
                task["status"], task["agent"] = "waiting", ""
        state["votes"] = {
            name: vote for name, vote in state["votes"].items() if vote["status"] != "open"
        }
        for agent in state["agent_states"]:
            agent["status"], agent["task"] = "off", ""
        self._staff()
        self.step()

    def _staff(self) -> None:
        site = self.site
        most = min(site.most_agents, site.config.max_agents)
        if planted("session-too-many-agents"):
            most = len(site.phase.agents)
        site.say("phase.start", phase=site.phase.name)
        self._work.staff(list(site.phase.agents[:most]))
        limit_s = site.phase.minutes * 60 * site.scale
        index = site.state["phase"]["index"]

        def late() -> None:
            if site.state["phase"]["index"] == index and site.state["status"] == "running":
                site.say("phase.overdue", phase=site.phase.name, minutes=site.phase.minutes)

        site.clock.after(max(0.0, limit_s - site.phase_elapsed_s()), late)

    # --- going on ---------------------------------------------------------------------------------------

    def step(self) -> None:
        """Give free agents something to do; when nothing is left, look whether the phase is over."""
        if self._work.halted or self._ending:
            return
        if self._votes_open():
            return
        self._dispatch()
        tasks = self.site.phase_tasks().values()
        busy = any(desk.job for desk in self._work.desks.values())
        done = all(task["status"] in _DONE for task in tasks)
        if planted("session-gate-skipped") and not busy:
            done = done or sum(task["status"] in _DONE for task in tasks) * 2 >= len(tasks)
        if done and not busy and not self._gating and not self._waiting:
            self._gate()

    def _free(self) -> list[Desk]:
        return [desk for desk in self._work.desks.values() if desk.job is None]

    def _dispatch(self) -> None:
        state = self.site.state
        for task in self.site.project.tasks:
            known = state["tasks"][task.id]
            if task.phase != self.site.phase.name or known["status"] != "waiting":
                continue
            if known.get("not_before", 0.0) > self.site.clock.now():
                continue
            missing = [need for need in task.needs if state["tasks"][need]["status"] not in _DONE]
            if missing and not planted("session-needs-ignored"):
                continue
            desk = self._choose(task)
            if desk is not None:
                self._assign(task, known, desk)

    def _choose(self, task: Task) -> Desk | None:
        """A free agent of the role; any, when there is none of it here or it has idled long enough."""
        free = self._free()
        roles = self.site.project.roles
        there = {roles[name] for name in self._work.desks}
        left = self._left.get(task.id)
        fit = [one for one in free if roles[one.name] == task.role or task.role not in there]
        if not fit or (left and all(one.name == left for one in fit)):
            now_s, limit_s = self.site.clock.now(), self.site.config.idle_s
            idle = [one for one in free if now_s - one.free_since_s >= limit_s and one.name != left]
            others = [one for one in free if one.name != left] if left else []
            fit = others or idle or fit
        return min(fit, key=lambda one: (one.name == left, one.free_since_s), default=None)

    def _assign(self, task: Task, known: Json, desk: Desk) -> None:
        left = self._left.pop(task.id, None)
        roles = self.site.project.roles
        known["status"], known["agent"] = "working", desk.name
        known.pop("not_before", None)
        if left:
            more = {"task": task.id, "from": left, "to": desk.name}
            self.site.say("task.reassigned", **more, why="idle")
        elif roles[desk.name] != task.role and task.role in {roles[n] for n in self._work.desks}:
            more = {"task": task.id, "from": task.role, "to": desk.name}
            self.site.say("task.reassigned", **more, why="idle")
        self.site.say("task.start", task=task.id, agent=desk.name)
        half_s = task.minutes * 30 * self.site.scale
        first_s, second_s = known.get("left_s", (half_s, half_s))
        job = Job("task", task.id, (first_s, second_s))
        job.prompt = self._work.task_prompt(task.id)
        self._work.begin(desk, job)

    def look_for_idle(self) -> None:
        """Agents that are stuck lose their tasks; agents without work may take those of others."""
        for job in self._work.look_for_idle():
            if job.kind == "task":
                known = self.site.state["tasks"][job.name]
                self._left[job.name] = known["agent"]
                outcome = {"error": "idle", "text": f"{known['agent']} was silent"}
                self._task_failed(job, known, outcome, wait_s=0.0)
            elif job.kind == "vote":
                self.withdraw_votes()
            else:
                self._gating = False
        self.step()

    # --- what agents bring ------------------------------------------------------------------------------

    def job_done(self, desk: Desk, job: Job, outcome: Json) -> None:
        """A job has ended, well or not."""
        if job.kind == "vote":
            self._ballot(desk, job, outcome)
        elif job.kind == "gate":
            self._judge(outcome)
        else:
            known = self.site.state["tasks"][job.name]
            if not self._guarded("task", lambda: self._task_done(desk, job, outcome)):
                known["status"], known["agent"] = "waiting", ""
        self.step()

    def _guarded(self, what: str, action: Callable[[], None]) -> bool:
        """What must be on the disk before the session goes on; False: it is not, and the session pauses."""
        try:
            action()
        except (OSError, GitFailed) as error:
            self._owner.critical(kind_of(error), f"{what} could not be saved: {error}")
            return False
        return True

    def _task_done(self, desk: Desk, job: Job, outcome: Json) -> None:
        site = self.site
        known = site.state["tasks"][job.name]
        if not outcome["ok"]:
            self._task_failed(job, known, outcome, self.site.config.backoff_cap_s)
            return
        if job.files:
            site.state["git_commit"] = site.repository.commit_paths(
                f"{job.name}: {outcome['text'][:60]}", list(job.files)
            )
        for name, written in job.files.items():
            with open(site.session.file("project", name), "rb") as file:
                entry = file_entry(file.read())
            if entry["sha256"] != written["sha256"] and not planted("session-torn-file"):
                raise OSError(f"{name} is not what {desk.name} wrote")
            site.state["file_system_state"][name] = entry
        bad = (
            job.tests is not None
            and job.tests["passed"] + job.tests["skipped"] != job.tests["total"]
        )
        known["status"], known["agent"] = ("flagged" if bad else "done"), desk.name
        known.pop("left_s", None)
        if bad:
            site.state["counts"]["errors"] += 1
            more = {"kind": "test_failure", "severity": "degraded", "agent": desk.name}
            site.say("error", **more, task=job.name, attempt=1, action="flag", wait_s=0.0, text="")
            site.say("task.flagged", task=job.name, agent=desk.name, why="test_failure")
        site.save("task")  # what is told as done outlives whatever comes next
        site.say("task.done", task=job.name, agent=desk.name, files=list(job.files))

    def _task_failed(self, job: Job, known: Json, outcome: Json, wait_s: float) -> None:
        """Back in the queue, but not for ever."""
        known["attempts"] += 1
        known["status"], known["agent"] = "waiting", ""
        known.pop("left_s", None)
        text = f"task {job.name} failed {known['attempts']} times: {outcome['error']}"
        if known["attempts"] >= self.site.config.task_attempts and not planted(
            "session-retry-unbounded"
        ):
            known["attempts"] = 0
            self._owner.critical("task_failed", f"{text}: {outcome['text']}"[:300])
            return
        known["not_before"] = self.site.clock.now() + wait_s
        self.site.clock.after(wait_s, self.step)
        self._guarded("task", lambda: self.site.save("task"))

    # --- votes ------------------------------------------------------------------------------------------

    def _votes_open(self) -> bool:
        """Open the next vote of the phase; False when all are decided."""
        state = self.site.state
        for vote in self.site.phase_votes():
            known = state["votes"].get(vote.id)
            if known is None:
                if self._saving.pending or len(self._free()) < len(self._work.desks):
                    return any(
                        desk.job and desk.job.kind == "vote" for desk in self._work.desks.values()
                    )
                self._open_vote(vote, 1, 0)
                return True
            if known["status"] in ("open", "escalated"):
                return True
        return False

    def _open_vote(self, vote: Vote, number: int, cast: int) -> None:
        site = self.site
        voters = sorted(self._work.desks)
        site.state["votes"][vote.id] = {
            "status": "open",
            "option": "",
            "rounds": number,
            "ballots": {},
            "cast": cast,
            "left": len(voters),
        }
        if number == 1:
            site.say("vote.open", vote=vote.id, options=list(vote.options), voters=voters)
        for name in voters:
            options = ", ".join(vote.options)
            job = Job("vote", vote.id)
            job.prompt = f"Vote {vote.id} by {name}: {vote.question} Options: {options}"
            self._work.begin(self._work.desks[name], job)

    def _ballot(self, desk: Desk, job: Job, outcome: Json) -> None:
        known = self.site.state["votes"].get(job.name)
        if known is None or known["status"] != "open":
            return
        known["left"] -= 1
        if outcome["ok"]:
            option = outcome["option"]
            trust = self.site.agent(desk.name)["trust"]
            known["ballots"][desk.name] = option
            known["cast"] += 1
            self.site.say("vote.ballot", vote=job.name, agent=desk.name, option=option, trust=trust)
        if known["left"] == 0:
            vote = next(one for one in self.site.project.votes if one.id == job.name)
            self._guarded("vote", lambda: self._count(vote, known))

    def _count(self, vote: Vote, known: Json) -> None:
        site = self.site
        trust = {one["name"]: one["trust"] for one in site.state["agent_states"]}
        option = votes.winner(known["ballots"], trust)
        if option is not None:
            self._decided(vote, known, "won", option)
            return
        self._deadlock_since.setdefault(vote.id, site.clock.now())
        if known["rounds"] < site.config.vote_rounds or planted("session-deadlock-forever"):
            number, cast = known["rounds"] + 1, known["cast"]
            known["status"] = "open"

            def again() -> None:
                if site.state["votes"].get(vote.id) is known and known["left"] == 0:
                    self._open_vote(vote, number, cast)

            site.clock.after(site.config.vote_wait_s, again)
            return
        site.state["counts"]["errors"] += 1
        site.say("vote.deadlock", vote=vote.id, rounds=known["rounds"])
        more = {"kind": "deadlock", "severity": "critical", "agent": "", "task": vote.id}
        first = votes.by_priority(known["ballots"], site.project.roles)
        resolves = site.config.deadlock == "priority" and first is not None
        action = "priority" if resolves else "escalate"
        site.say("error", **more, attempt=known["rounds"], action=action, wait_s=0.0, text="")
        if resolves:
            assert first is not None
            site.say("vote.priority", vote=vote.id, option=first[0], by=first[1])
            self._decided(vote, known, "priority", first[0])
            took_s = round(site.clock.now() - self._deadlock_since.pop(vote.id), 3)
            self._work.recovered("deadlock", took_s, by="priority")
            return
        known["status"] = "escalated"
        site.say("vote.escalated", vote=vote.id, options=list(vote.options))
        self._owner.critical("deadlock", f"vote {vote.id} cannot be won: decide {vote.options}")

    def _decided(self, vote: Vote, known: Json, status: str, option: str) -> None:
        known["status"], known["option"] = status, option
        self.site.state["working_memory"][f"decision.{vote.id}"] = option
        if status == "won":
            self.site.say("vote.won", vote=vote.id, option=option)
        self.site.save("vote")

    def decide(self, name: str, option: str) -> None:
        """Somebody has decided what a vote could not."""
        vote = next((one for one in self.site.project.votes if one.id == name), None)
        known = self.site.state["votes"].get(name)
        if vote is None or known is None or known["status"] != "escalated":
            raise Refused("no_vote", f"No vote '{name}' waits for a decision")
        if option not in vote.options:
            raise Refused("no_vote", f"Vote {name} is between {', '.join(vote.options)}")
        self.site.say("vote.decided", vote=name, option=option)
        self._decided(vote, known, "decided", option)

    def withdraw_votes(self) -> None:
        """Open votes begin anew later."""
        for desk in self._work.desks.values():
            if desk.job is not None and desk.job.kind == "vote":
                self._work.drop(desk)
        state = self.site.state
        state["votes"] = {
            name: vote for name, vote in state["votes"].items() if vote["status"] != "open"
        }

    # --- gates ------------------------------------------------------------------------------------------

    def _gate(self) -> None:
        """Everything is done: is it good? The tests are run again where they matter."""
        self._gating = True
        if not gates.needs_tests(self.site.phase.criteria):
            self._judge({"ok": True, "error": ""})
            return
        roles = self.site.project.roles
        desk = min(self._free(), key=lambda one: (roles[one.name] != "tester", one.name))
        self._work.begin(desk, Job("gate", f"gate-{self.site.phase.name}"))

    def _judge(self, outcome: Json) -> None:
        site, phase = self.site, self.site.phase
        self._gating = False
        if outcome["error"] in ("test_timeout",):
            site.state["test_results"] = {**site.state["test_results"], "passed": 0}
        answers = gates.judge(site.project, phase.criteria, site.state, self._checkpoint_valid())
        passed = all(answers.values())
        if planted("session-gate-skipped"):
            passed = True
        site.say("phase.gate", phase=phase.name, passed=passed, criteria=answers)
        if passed:
            self._gate_tries = 0
            self._phase_over()
            return
        self._gate_tries += 1
        failed = [name for name, holds in answers.items() if not holds]
        if self._gate_tries >= site.config.gate_attempts:
            self._gate_tries = 0
            self._owner.critical("gate_failed", f"phase {phase.name} does not pass: {failed}")
            return
        site.state["counts"]["errors"] += 1
        more = {"kind": "gate", "severity": "degraded", "agent": "", "task": "", "action": "retry"}
        wait_s = site.config.gate_wait_s
        text = ", ".join(failed)
        site.say("error", **more, attempt=self._gate_tries, wait_s=wait_s, text=text)
        self._waiting = True

        def again() -> None:
            self._waiting = False
            self.step()

        site.clock.after(wait_s, again)

    def _checkpoint_valid(self) -> bool:
        """Can the newest checkpoint be read again?"""
        try:
            chain = self.site.session.checkpoints.read(self.site.numbers[0])
        except Invalid:
            return False
        return not chain.why

    def _phase_over(self) -> None:
        """The phase is complete: that is kept before the next one begins."""
        site = self.site
        site.say("phase.complete", phase=site.phase.name)
        last = site.state["phase"]["index"] + 1 == len(site.project.phases)
        self._ending = True

        def kept(made: Json) -> None:
            self._ending = False
            if not made.get("ok", True):
                self._gating = False
                return  # paused: the gate is passed again after `continue`
            if last:
                self._complete()
                return
            site.enter(site.state["phase"]["index"] + 1)
            self._guarded("phase", lambda: site.save("phase"))
            self._staff()
            self.step()

        if planted("session-no-phase-checkpoint") and not last:
            kept({})
        else:
            self._saving.want("phase", kept)

    def _complete(self) -> None:
        site = self.site
        self._ending = True

        def kept(made: Json) -> None:
            if not made.get("ok", True):
                self._ending = False
                return
            site.say("session.complete")
            self._owner.over = True

        self._saving.want("end", kept, status="complete")
