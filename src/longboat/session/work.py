"""Agents at work: who does what, one model call or tool call at a time, within all limits.

A job is a row of small steps (think, ask the model, use tools, think, ask again, done), and between two
steps an agent can be held: for a limit, for a checkpoint, for a pause. What fails is tried again as
`policy` says; what cannot be done pauses the session, and never disappears.
"""

from __future__ import annotations

import json
import selectors
from collections.abc import Callable
from typing import Protocol

from longboat.planting import planted
from longboat.session import contexts, policy, votes
from longboat.session.crew import Hand
from longboat.session.desks import Desk, Job
from longboat.session.policy import SEVERITIES, Tries
from longboat.session.site import Site
from longboat.session.tools import SCHEMAS
from longboat.session.values import Json, compact, digest

_BATCH_FROM = 0.8
_MOST_ROUNDS = 20
"""From this part of its calls on, an agent does everything of one answer in one call."""
_ALERT_FROM = 0.8
_GAIN, _LOSS = 0.01, 0.05
_STARTING_S = 600.0


class Captain(Protocol):
    """Who is told when something is for the whole session to decide."""

    def critical(self, kind: str, text: str) -> None:
        """Pause."""

    def job_done(self, desk: Desk, job: Job, outcome: Json) -> None:
        """A job has ended; what it brought."""

    def settled(self) -> None:
        """A call has ended: something that waited for that may go on."""

    def wants_quiet(self) -> bool:
        """May no tool be used now?"""


class Work:
    """All agents of the present phase."""

    def __init__(self, site: Site, selector: selectors.BaseSelector, captain: Captain) -> None:
        self.site = site
        self.desks: dict[str, Desk] = {}
        self._selector = selector
        self._captain = captain
        self.halted = False
        self._alerted = False
        site.before_saving = self.note_progress

    # --- who is there ---------------------------------------------------------------------------------

    def staff(self, names: list[str]) -> None:
        """Exactly these agents work from now on."""
        for name in [name for name in self.desks if name not in names]:
            desk = self.desks.pop(name)
            if desk.hand is not None:
                desk.hand.end()
                desk.hand = None
                self.site.say("agent.end", agent=name)
            self.site.agent(name)["status"] = "off"
        for name in names:
            if name not in self.desks:
                desk = self.desks[name] = Desk(name)
                desk.free_since_s = self.site.clock.now()
                self.site.agent(name)["status"] = "idle"
                self._start(desk)

    def _start(self, desk: Desk) -> None:
        try:
            desk.hand = Hand(
                self.site.session,
                desk.name,
                self._selector,
                lambda message: self._heard(desk, message),
                lambda: self._lost(desk, "its process ended"),
            )
        except OSError as error:
            self._error("agent_lost", desk, str(error), "backoff", self.site.config.backoff_s)
            self.site.clock.after(self.site.config.backoff_s, lambda: self._restart(desk))
            return
        start = desk.hand.identity.start if desk.hand.identity else 0
        self.site.say("agent.start", agent=desk.name, pid=desk.hand.pid, start=start)

    def pids(self) -> list[int]:
        """The agents' processes."""
        return [desk.hand.pid for desk in self.desks.values() if desk.hand is not None]

    def end(self) -> None:
        """Nobody works any more."""
        for desk in self.desks.values():
            if desk.hand is not None:
                desk.hand.end()
                desk.hand = None

    def active_tools(self) -> bool:
        """Is a tool being used just now?"""
        return any(desk.call and desk.call["kind"] == "tool" for desk in self.desks.values())

    # --- holding --------------------------------------------------------------------------------------

    def release(self) -> None:
        """What was held goes on, unless it is held again."""
        for desk in list(self.desks.values()):
            held, desk.held = desk.held, None
            if held is not None:
                held()

    def _later(self, desk: Desk, wait_s: float, step: Callable[[Desk], None]) -> None:
        """A step of this job so much later; forgotten when the agent has another job by then."""
        generation = desk.generation

        def due() -> None:
            if desk.generation == generation and desk.job is not None:
                step(desk)

        self.site.clock.after(wait_s, due)

    # --- jobs -----------------------------------------------------------------------------------------

    def begin(self, desk: Desk, job: Job) -> None:
        """Give a free agent something to do."""
        desk.job, desk.tries = job, Tries()
        desk.generation += 1
        agent = self.site.agent(desk.name)
        agent["status"], agent["task"] = "working", job.name if job.kind == "task" else ""
        desk.free_since_s = self.site.clock.now()
        if job.kind == "gate":
            self._use(desk, [{"id": "", "name": "run_tests", "input": {}}])
            return
        contexts.begin(agent)
        self._think(desk, job, 0)

    def _think(self, desk: Desk, job: Job, half: int) -> None:
        """What takes the time: it goes on where a checkpoint has kept it."""
        job.half, job.thinks_since_s = half, self.site.clock.now()

        def thought(one: Desk) -> None:
            job.left_s[half], job.thinks_since_s = 0.0, None
            self._ask(one)

        self._later(desk, job.left_s[half], thought)

    def note_progress(self) -> None:
        """How far tasks are, into the state: a crash then costs no thought older than that."""
        now_s = self.site.clock.now()
        for desk in self.desks.values():
            job = desk.job
            if job is None or job.kind != "task":
                continue
            left_s = list(job.left_s)
            if job.thinks_since_s is not None:
                left_s[job.half] = max(0.0, left_s[job.half] - (now_s - job.thinks_since_s))
            self.site.state["tasks"][job.name]["left_s"] = [round(one, 3) for one in left_s]

    def drop(self, desk: Desk) -> Job | None:
        """Take an agent's job away."""
        job, desk.job, desk.held = desk.job, None, None
        desk.generation += 1
        agent = self.site.agent(desk.name)
        now_s = self.site.clock.now()
        agent["busy_s"] = round(agent["busy_s"] + max(0.0, now_s - desk.free_since_s), 3)
        agent["status"], agent["task"] = "idle", ""
        desk.free_since_s = now_s
        return job

    def _finish(self, desk: Desk, outcome: Json) -> None:
        job = self.drop(desk)
        assert job is not None
        agent = self.site.agent(desk.name)
        contexts.summarise(agent, job.name, outcome.get("text", ""))
        change = _GAIN if outcome["ok"] else -_LOSS
        agent["trust"] = round(min(1.0, max(0.0, agent["trust"] + change)), 4)
        self._captain.job_done(desk, job, outcome)

    # --- asking the model -----------------------------------------------------------------------------

    def _ask(self, desk: Desk) -> None:
        """The next model call, when nothing holds it back."""
        job = desk.job
        assert job is not None
        if self.halted or desk.hand is None:
            desk.held = lambda: self._ask(desk)
            return
        agent = self.site.agent(desk.name)
        call = f"c{self.site.spent.last_call + 1}"
        body = self._body(desk, job, call)
        size = _tokens(body)
        limit = self.site.config.context_tokens
        if size > limit and not planted("session-context-unbounded"):
            contexts.compress(agent)
            body = self._body(desk, job, call)
            after = _tokens(body)
            self.site.say("context.compressed", agent=desk.name, before=size, after=after)
            self._reached("context", desk, "compress", size, limit)
            size = after
        if self._must_wait(desk, size):
            return
        fallback = desk.tries.fallback
        config = self.site.config
        url = (config.fallback_url if fallback else "") or config.model_url
        self._call(desk, {"call": call, "kind": "model", "model": body["model"]})
        order = {"op": "model", "call": call, "url": url, "body": body}
        desk.hand.order({**order, "timeout_s": config.model_timeout_s})

    def _must_wait(self, desk: Desk, size: int) -> bool:
        """Throttle an agent; end the session's spending at its budget."""
        config, now_s = self.site.config, self.site.clock.now()
        used = self.site.spent.tokens
        if used + size > config.total_tokens and not planted("session-budget-ignored"):
            desk.held = lambda: self._ask(desk)
            self._captain.critical("budget", f"{used} of {config.total_tokens} tokens are used")
            return True
        alert_from = 0.1 if planted("session-alert-early") else _ALERT_FROM
        if used > config.total_tokens * alert_from and not self._alerted:
            self._alerted = True
            self.site.say("budget.alert", used=used, limit=config.total_tokens)
            for one in self.site.state["agent_states"]:
                contexts.compress(one)
        wait_s = desk.tokens.wait_s(now_s, size, config.agent_tokens_hour)
        if wait_s and not planted("session-tokens-unthrottled"):
            if not desk.throttled:
                used = desk.tokens.used(now_s)
                self._reached("agent_tokens_hour", desk, "throttle", used, config.agent_tokens_hour)
            self._throttle(desk, "agent_tokens_hour", wait_s, self._ask)
            return True
        self._cleared(desk)
        return False

    def _throttle(
        self, desk: Desk, limit: str, wait_s: float, step: Callable[[Desk], None]
    ) -> None:
        desk.throttled = desk.throttled or limit
        self.site.agent(desk.name)["status"] = "throttled"
        self._later(desk, wait_s, step)

    def _reached(self, limit: str, desk: Desk, action: str, used: int, value: int) -> None:
        known = {"limit": limit, "agent": desk.name, "action": action, "used": used}
        self.site.say("limit.reached", **known, limit_value=value)

    def _cleared(self, desk: Desk) -> None:
        if desk.throttled:
            self.site.say("limit.cleared", limit=desk.throttled, agent=desk.name)
            desk.throttled = ""
            self.site.agent(desk.name)["status"] = "working"

    def _body(self, desk: Desk, job: Job, call: str) -> Json:
        agent = self.site.agent(desk.name)
        config = self.site.config
        model = config.fallback_model if desk.tries.fallback else config.model
        agent["model"] = model
        text = f"[{call}] {job.prompt}"
        if job.again:
            text += f"\nThe last answer could not be used (attempt {job.again + 1}): use the tools."
        return {
            "model": model,
            "max_tokens": 4096,
            "system": f"You are {desk.name}, {agent['role']} of {self.site.project.name}.",
            "tools": SCHEMAS,
            "messages": [*agent["context"], contexts.question(text, job.results)],
        }

    # --- using tools ----------------------------------------------------------------------------------

    def _use(self, desk: Desk, uses: list[Json]) -> None:
        """The next tool call: several at once when the agent has few calls left."""
        if self.halted or desk.hand is None or self._captain.wants_quiet():
            desk.held = lambda: self._use(desk, uses)
            self._captain.settled()
            return
        config, now_s = self.site.config, self.site.clock.now()
        limit, used = config.agent_calls_hour, desk.calls.used(now_s)
        wait_s = desk.calls.wait_s(now_s, 1, limit)
        if wait_s and not planted("session-calls-unlimited"):
            if not desk.throttled:
                self._reached("agent_calls_hour", desk, "wait", used, limit)
            self._throttle(desk, "agent_calls_hour", wait_s, lambda one: self._use(one, uses))
            return
        self._cleared(desk)
        batch = len(uses) > 1 and used + len(uses) > limit * _BATCH_FROM
        now, later = (uses, []) if batch else (uses[:1], uses[1:])
        if batch:
            self._reached("agent_calls_hour", desk, "batch", used, limit)
        call = f"c{self.site.spent.last_call + 1}"
        name = "batch" if batch else now[0]["name"]
        known = {"name": name, "input": digest(compact([one["input"] for one in now]))[:16]}
        desk.calls.add(now_s, 1)
        if not self._call(desk, {"call": call, "kind": "tool", **known}, uses=now, later=later):
            return
        order = {"op": "tool", "call": call, "uses": now, "timeout_s": config.tool_timeout_s}
        test_time_s = 1e9 if planted("session-test-time-ignored") else config.test_time_s
        desk.hand.order({**order, "test_time_s": test_time_s})

    def _call(self, desk: Desk, line: Json, **more: object) -> bool:
        """A call begins: it stands in the ledger before anything happens."""
        job = desk.job
        assert job is not None
        desk.call = {**line, "task": job.name, **more}
        try:
            self.site.note_call({"state": "begin", "agent": desk.name, "task": job.name, **line})
        except OSError as error:
            desk.call = None
            desk.held = self._again(desk)
            self._captain.critical(_disk(error), f"the ledger of calls: {error}")
            return False
        return True

    # --- hearing --------------------------------------------------------------------------------------

    def _heard(self, desk: Desk, message: Json) -> None:
        call = desk.call
        if call is None or message.get("call") != call["call"]:
            return
        desk.call = None
        try:
            if call["kind"] == "model":
                self._answered(desk, call, message)
            else:
                self._used(desk, call, message["results"])
        except OSError as error:
            if desk.job is not None and desk.call is None:
                desk.held = self._again(desk)
            self._captain.critical(_disk(error), f"after a call: {error}")
        self._captain.settled()

    def _answered(self, desk: Desk, call: Json, message: Json) -> None:
        known = {key: call[key] for key in ("call", "kind", "task", "model")}
        usage = {key: int(message.get(key) or 0) for key in ("input_tokens", "output_tokens")}
        error = message.get("error", "")
        end = {"state": "end", "agent": desk.name, **known, "ok": message["ok"], "error": error}
        self.site.note_call({**end, **usage})
        desk.tokens.add(self.site.clock.now(), sum(usage.values()))
        job = desk.job
        if job is None:
            return  # it was taken away meanwhile; what was spent is counted
        if not message["ok"]:
            self._failed(desk, error, message.get("text", ""), message.get("retry_after_s"))
            return
        if job.kind == "vote":
            self._voted(desk, job, message["text"])
        elif not message["tools"] or (job.results and planted("session-later-tools-ignored")):
            self._concluded(desk, job, message)
        elif job.rounds >= _MOST_ROUNDS:
            text = f"it asks for tools again and again ({job.rounds} times)"
            self._failed(desk, "parse_failure", text, None, anew=True)
        else:
            job.rounds += 1
            agent = self.site.agent(desk.name)
            contexts.add(agent, contexts.question(f"[{call['call']}] {job.prompt}", job.results))
            contexts.add(agent, contexts.answer(message["text"], message["tools"]))
            job.results = []
            self._use(desk, message["tools"])

    def _concluded(self, desk: Desk, job: Job, message: Json) -> None:
        """The model has nothing more to do: is it true?"""
        task = next(task for task in self.site.project.tasks if task.id == job.name)
        missing = [name for name in task.files if name not in job.files]
        if missing or (not job.results and (task.tests or task.remember)):
            text = f"the answer did not do the task: {missing}"
            self._failed(desk, "parse_failure", text, None, anew=True)
            return
        self._went_well(desk)
        self._finish(desk, {"ok": True, "text": f"wrote {', '.join(job.files) or 'nothing'}"})

    def _voted(self, desk: Desk, job: Job, text: str) -> None:
        vote = next(one for one in self.site.project.votes if one.id == job.name)
        option = votes.ballot(text, list(vote.options))
        if option is None:
            self._failed(desk, "parse_failure", f"not one of the options: {text[:80]!r}", None)
            return
        self._went_well(desk)
        self._finish(desk, {"ok": True, "option": option, "text": option})

    def _used(self, desk: Desk, call: Json, results: list[Json]) -> None:
        known = {key: call[key] for key in ("call", "kind", "task", "name")}
        wrong = next((one for one in results if not one["ok"]), None)
        files = [
            {key: one[key] for key in ("path", "sha256", "size")}
            for one in results
            if "size" in one
        ]
        only = files[0] if len(files) == 1 else {"files": files} if files else {}
        error = wrong["error"] if wrong else ""
        end = {"state": "end", "agent": desk.name, **known, "ok": wrong is None, "error": error}
        self.site.note_call({**end, **only})
        job = desk.job
        if job is None:
            return
        for use, result in zip(call["uses"], results, strict=True):
            self._take(job, result)
            job.results.append({"id": use["id"], "text": result["text"]})
        if wrong is not None and error in ("timeout", "no_space", "system"):
            self._tool_failed(desk, error, wrong["text"])
            return
        if wrong is not None and error == "test_timeout":
            self._error("test_timeout", desk, wrong["text"], "flag", 0.0)
        if call["later"]:
            self._use(desk, call["later"])
        elif job.kind == "gate":
            self._finish(desk, {"ok": wrong is None, "error": error, "text": results[-1]["text"]})
        else:
            job.prompt = f"Results of {job.name}: {len(job.results)} tools were used."
            self._went_well(desk)
            self._think(desk, job, 1)

    def _take(self, job: Job, result: Json) -> None:
        """What a tool brought: for the task, and for everybody."""
        if "sha256" in result:
            job.files[result["path"]] = result
        if "memory" in result:
            self.site.state["working_memory"][result["memory"]["key"]] = result["memory"]["value"]
        if "tests" in result:
            tests = {key: value for key, value in result["tests"].items() if key != "said"}
            self.site.state["test_results"] = tests
            job.tests = tests

    # --- failing --------------------------------------------------------------------------------------

    def _tool_failed(self, desk: Desk, error: str, text: str) -> None:
        assert desk.job is not None
        if error in ("no_space", "system"):
            desk.held = self._again(desk)
            self._captain.critical("disk_full" if error == "no_space" else "system", text)
            return
        self._failed(desk, "tool_timeout", text, None, anew=True)

    def _failed(
        self, desk: Desk, kind: str, text: str, retry_after_s: float | None, *, anew: bool = False
    ) -> None:
        """An error of this job: again, later, with the other model, or not any more."""
        config, now_s = self.site.config, self.site.clock.now()
        before = desk.tries
        step = policy.next_step(kind, before, config, now_s, retry_after_s)
        desk.tries = step.tries
        self._error(kind, desk, text, step.action, step.wait_s)
        job = desk.job
        assert job is not None
        if kind in ("parse_failure", "refused"):
            job.again += 1
        if step.action == "switch":
            known = {"from": config.model, "to": config.fallback_model}
            self.site.say("model.switched", agent=desk.name, **known)
        if step.action == "give_up":
            self._finish(desk, {"ok": False, "error": kind, "text": text})
            return
        desk.asks_from_s = now_s + step.wait_s
        again = self._again(desk, anew=anew)
        self._later(desk, step.wait_s, lambda _: again())

    def _again(self, desk: Desk, *, anew: bool = True) -> Callable[[], None]:
        """The last question of the present job again, or the whole job: its files are then written anew."""
        job = desk.job

        def again() -> None:
            if job is None or desk.job is not job:
                return
            if job.kind == "gate":
                self._use(desk, [{"id": "", "name": "run_tests", "input": {}}])
                return
            if anew and job.kind == "task":
                job.results, job.files, job.rounds = [], {}, 0
                job.prompt = self.task_prompt(job.name)
                contexts.begin(self.site.agent(desk.name))
            self._ask(desk)

        return again

    def task_prompt(self, name: str) -> str:
        """What a task's first question says."""
        task = next(task for task in self.site.project.tasks if task.id == name)
        files = f" Files: {', '.join(task.files)}." if task.files else ""
        return f"Task {task.id}: {task.title}.{files}"

    def _error(self, kind: str, desk: Desk, text: str, action: str, wait_s: float) -> None:
        self.site.state["counts"]["errors"] += 1
        task = desk.job.name if desk.job else ""
        attempt = desk.tries.at_once + desk.tries.backed_off
        known = {"kind": kind, "severity": SEVERITIES[kind], "agent": desk.name, "task": task}
        more = {"attempt": attempt, "action": action, "wait_s": wait_s, "text": text[:300]}
        self.site.say("error", **known, **more)

    def _went_well(self, desk: Desk) -> None:
        if desk.tries.kind:
            took_s = round(self.site.clock.now() - desk.tries.since_s, 3)
            self.recovered(desk.tries.kind, took_s, desk)
        desk.tries = Tries(fallback=desk.tries.fallback)

    def recovered(self, kind: str, took_s: float, desk: Desk | None = None, by: str = "") -> None:
        """Something that went wrong is right again."""
        self.site.state["counts"]["recoveries"] += 1
        task = desk.job.name if desk and desk.job else ""
        by = by or ("fallback" if desk and desk.tries.fallback else "retry")
        known = {"kind": kind, "agent": desk.name if desk else "", "task": task}
        self.site.say("recovered", **known, took_s=took_s, by=by)

    # --- agents that are lost, idle or too large --------------------------------------------------------

    def _lost(self, desk: Desk, why: str) -> None:
        """Its process has gone: another one goes on with what it knew."""
        self._unhand(desk, why, "agent_lost")
        self.site.clock.after(min(1.0, self.site.config.backoff_s), lambda: self._restart(desk))

    def _unhand(self, desk: Desk, why: str, kind: str) -> None:
        if desk.hand is not None:
            desk.hand.end()
            desk.hand = None
        self.site.agent(desk.name)["restarts"] += 1
        self.site.say("agent.lost", agent=desk.name, why=why)
        step = policy.next_step(kind, desk.tries, self.site.config, self.site.clock.now())
        desk.tries = step.tries
        self._error(kind, desk, why, "restart", 0.0)
        desk.call = None
        desk.generation += 1  # what the lost one was about to do is done by the next one
        if desk.job is not None:
            desk.held = self._after_wait(desk)
            if step.action == "give_up":
                self._finish(desk, {"ok": False, "error": kind, "text": why})
        self._captain.settled()

    def _after_wait(self, desk: Desk) -> Callable[[], None]:
        """The job again; whoever was told to wait waits, also in a new process."""
        again = self._again(desk)

        def waited() -> None:
            wait_s = max(0.0, desk.asks_from_s - self.site.clock.now())
            self._later(desk, wait_s, lambda _: again())

        return waited

    def _restart(self, desk: Desk) -> None:
        if desk.hand is None and self.desks.get(desk.name) is desk:
            self._start(desk)
            held, desk.held = desk.held, None
            if held is not None:
                held()
                if planted("session-asks-twice"):
                    held()

    def restart(self, desk: Desk, why: str) -> None:
        """A new process for an agent, with the same job and the same context."""
        tries = desk.tries
        self._unhand(desk, why, "memory_pressure")
        desk.tries = tries  # it was no failure of the job
        self._restart(desk)

    def look_for_idle(self) -> list[Job]:
        """Jobs of agents that do nothing for too long; they are somebody else's now."""
        found = []
        limit_s = self.site.config.idle_s
        if planted("session-idle-ignored"):
            return []
        for desk in list(self.desks.values()):
            if desk.call is None or desk.hand is None:
                continue
            # Who has not come up yet is slow, not idle.
            patience_s = limit_s if desk.hand.ready else max(limit_s, _STARTING_S)
            if planted("session-idle-early"):
                patience_s = 0.0
            if desk.hand.silent_s() <= patience_s:
                continue
            self._reached("idle", desk, "reassign", int(desk.hand.silent_s()), int(limit_s))
            job = self.drop(desk)
            self._unhand(desk, f"silent for {limit_s:g} s", "idle")
            self._restart(desk)
            if job is not None:
                found.append(job)
        return found


def _tokens(body: Json) -> int:
    """What the model will count: a quarter of the bytes."""
    return len(json.dumps({**body, "stream": True}, ensure_ascii=False).encode()) // 4


def _disk(error: OSError) -> str:
    from longboat.board.files import is_full

    return "disk_full" if is_full(error) else "system"
