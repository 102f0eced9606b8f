"""What a session has spent and done by what it has written down: its calls and its events, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mutiny.contracts.session.observation import Row, SessionView, at_of

OF_CALLS = ("total_tokens_consumed", "model_calls", "tool_calls")
"""Counters of a line of metrics that the calls tell: what is spent stays spent."""
OF_EVENTS = ("errors_encountered", "consensus_votes_cast", "checkpoint_count", "recoveries")
"""Counters that the events tell; they go back with the state when it is restored."""
COUNTED = (*OF_CALLS, *OF_EVENTS)
ROUNDED, LONG_S = 0.001, 10.0
"""How exact a share is told; and how long a session has lasted when its pace can be told exactly."""
OF_AGENTS = ("tokens", "tool_calls")
"""Counters of each agent."""


@dataclass(frozen=True)
class Account:
    """Counters by their names in a line of metrics, and those of each agent."""

    whole: Mapping[str, int]
    agents: Mapping[str, Mapping[str, int]]

    def highest(self, name: str, one: SessionView) -> int:
        """What a counter may be at most: a restore writes a checkpoint without telling, and one that is
        just being written has its number.
        """
        if name != "checkpoint_count":
            return self.whole[name]
        return max(self.whole[name], *(point.number + 1 for point in one.points), 0) + 1

    def of(self, agent: object, name: str) -> int:
        """What one agent has used."""
        return self.agents.get(str(agent), {}).get(name, 0)


KEEPS_LOGS = (
    *("ModelError", "ToolTimeout", "MemoryPressure", "AgentDeadlock", "KillAgent", "FreezeAgent"),
    *("BadWork", "OddBytes", "Trespass", "SystemCrash"),
)
"""Faults after which every line that was written is still there."""


def logs_kept(faults: Iterable[str]) -> bool:
    """Was nothing done for which a line could be missing?"""
    return all(text.split("(")[0] in KEEPS_LOGS for text in faults)


def goes_back(one: SessionView) -> bool:
    """Was it ever restored?"""
    return any(True for _ in one.of("session.restore"))


def tokens(row: Row) -> int:
    """What one call of the model has used."""
    return int(row.get("input_tokens") or 0) + int(row.get("output_tokens") or 0)


def number_of(row: Row, name: str) -> float | None:
    """A number of a line; None: it does not tell it."""
    value = row.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def account_of(one: SessionView, until: Callable[[Row], bool] = lambda _row: True) -> Account:
    """Everything that was written down until a moment."""
    agents: dict[str, dict[str, int]] = {}
    answers = 0
    for row in filter(until, one.calls):
        used = agents.setdefault(str(row.get("agent", "")), dict.fromkeys(OF_AGENTS, 0))
        if row.get("kind") == "model" and row.get("state") == "end":
            used["tokens"] += tokens(row)
            answers += 1
        elif row.get("kind") == "tool" and row.get("state") == "begin":
            used["tool_calls"] += 1
    written = [row for row in one.of("checkpoint.written") if until(row)]
    numbers = [int(row.get("checkpoint") or 0) for row in written]
    whole = {
        "total_tokens_consumed": sum(used["tokens"] for used in agents.values()),
        "model_calls": answers,
        "tool_calls": sum(used["tool_calls"] for used in agents.values()),
        "errors_encountered": sum(map(until, one.of("error"))),
        "consensus_votes_cast": sum(map(until, one.of("vote.ballot"))),
        "checkpoint_count": max(numbers, default=0) + 1,
        "recoveries": sum(map(until, one.of("recovered"))),
    }
    return Account(whole, agents)


WRITTEN_S = 0.5
"""What ended so long before a line of metrics was written is counted in it."""


def around(one: SessionView, life: int, moment: float, margin_s: float) -> tuple[Account, Account]:
    """What was written down shortly before a moment of a life, and shortly after it."""

    def until(latest: float) -> Callable[[Row], bool]:
        return lambda each: (each.get("life", 1), at_of(each)) <= (life, latest)

    return account_of(one, until(moment - margin_s)), account_of(one, until(moment + margin_s))


def at_moment(one: SessionView, row: Row, margin_s: float) -> Iterator[str]:
    """What a line of metrics says was spent, against what stood in the logs when it was made."""
    life, told_s = row.get("life", 1), number_of(row, "elapsed_seconds")
    if told_s is None or not isinstance(life, int):
        return

    least, most = around(one, life, told_s + 0.5, margin_s + 0.5)  # it is told in whole seconds
    for name in COUNTED:
        said, low, high = row.get(name), least.whole[name], most.highest(name, one)
        low = 0 if name in OF_EVENTS and goes_back(one) else low
        if isinstance(said, int) and not low <= said <= high:
            yield f"{name} {said}; what was written down by then makes {low} to {high}"
    listed = row.get("agent_utilization")
    for each in listed if isinstance(listed, list) else ():
        for name in OF_AGENTS if isinstance(each, Mapping) else ():
            agent, said = each.get("agent"), each.get(name)
            low, high = least.of(agent, name), most.of(agent, name)
            if isinstance(said, int) and not low <= said <= high:
                yield f"{name} {said} of {agent}; what was written down makes {low} to {high}"


def contradictions(row: Row, one: SessionView, names: Callable[[str], bool]) -> Iterator[str]:
    """What cannot be so in a line of metrics, whenever it was made: its parts contradict each other, or
    the plan of the project. `names`: which parts mean what they are called.
    """
    done, left = row.get("tasks_completed"), row.get("tasks_remaining")
    whole = len(one.plan.tasks)
    if whole and isinstance(done, int) and isinstance(left, int) and done + left != whole:
        yield f"{done} tasks completed and {left} remaining; the project has {whole}"
    progress = number_of(row, "progress") if names("progress") and whole else None
    if progress is not None and isinstance(done, int) and abs(progress - done / whole) > ROUNDED:
        yield f"progress {progress:g}; {done} of {whole} tasks are completed"
    planned, rest = number_of(row, "planned_seconds"), number_of(row, "estimated_remaining")
    due = one.hours * 3600
    if names("planned_seconds") and planned is not None and due and abs(planned - due) > 1:
        yield f"planned_seconds {planned:g}; it was begun for {due:g} s"
    if rest is not None and due and not -1 <= rest <= due + 1:
        yield f"estimated_remaining {rest:g}; the whole session is to take {due:g} s"
    yield from _of_phase(row, one)
    yield from _of_agents(row, one)


def _of_phase(row: Row, one: SessionView) -> Iterator[str]:
    phase = row.get("phase")
    if one.plan.phases and phase is not None and phase not in one.plan.phases:
        yield f"phase {phase}; the project has {', '.join(one.plan.phases)}"
    names = ("tokens_per_minute", "total_tokens_consumed", "elapsed_seconds")
    pace, spent, took = (number_of(row, name) for name in names)
    if pace is None or spent is None or took is None or took < LONG_S:
        return
    least, most = spent / (took + 1) * 60, spent / took * 60
    if not least * 0.99 - 1 <= pace <= most * 1.01 + 1:
        yield f"tokens_per_minute {pace:g}; {spent:g} tokens in {took:g} s are {most:.0f}"


def _of_agents(row: Row, one: SessionView) -> Iterator[str]:
    """The agents of a line: those of the project, each once, and no more than the whole in sum."""
    listed = row.get("agent_utilization")
    rows = (
        [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    )
    yield from strangers(rows, "agent", one)
    for name, total in (("tokens", "total_tokens_consumed"), ("tool_calls", "tool_calls")):
        parts = [each.get(name) for each in rows]
        known = [part for part in parts if isinstance(part, int)]
        told = row.get(total)
        if isinstance(told, int) and len(known) == len(parts) and sum(known) > told:
            yield f"{name} of its agents in sum {sum(known)}; {total} {told}"


def strangers(rows: list[Row], key: str, one: SessionView) -> Iterator[str]:
    """Agents that the project does not have, that are told of twice, or that have another role."""
    names = [each.get(key) for each in rows]
    if one.plan.agents and (set(names) - set(one.plan.agents) or len(set(names)) != len(names)):
        yield f"the agents {', '.join(map(str, names))}; the project has {', '.join(one.plan.agents)}"
    for each in rows:
        due = one.plan.roles.get(str(each.get(key)))
        if due and each.get("role", due) != due:
            yield f"that {each.get(key)} is {each.get('role')}; the project says {due}"
