"""The figures of a run, from its journal: completion, spawns, failures, latency, depth, delegation, and how
long nobody had to step in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mutiny.kit.measuring import Bar, Line, Measured

INTERVENTIONS = ("Send", "Spawn", "Stop", "StopAll", "Cleanup")
"""What a human does when agents do not get on by themselves; the first message is the task itself."""
BEGUN = ("Send", "Spawn")
Row = Mapping[str, Any]


def measure(lines: Sequence[Line]) -> Measured | None:
    """All figures; None: nobody was ever summoned."""
    looked = [line for line in lines if line["post_state"].get("runs")]
    if not looked:
        return None
    return _Account(lines, looked[-1]["post_state"]).measured()


@dataclass(frozen=True)
class _Account:
    """A journal, and what was seen last."""

    lines: Sequence[Line]
    last: Row

    @cached_property
    def runs(self) -> list[Row]:
        return list(self.last["runs"])

    @cached_property
    def started(self) -> list[Row]:
        return [run for run in self.runs if run["status"] != "refused"]

    @cached_property
    def messages(self) -> dict[int, list[Any]]:
        return {row[0]: row for row in self.last["messages"]}

    @cached_property
    def zero(self) -> float:
        """When the first run was asked for, on the target's clock."""
        return min(float(run["created"]) for run in self.runs)

    @cached_property
    def rate(self) -> float:
        """How many times as fast the target's clock went."""
        rates = [
            float(line["operation"]["args"].get("rate", 1))
            for line in self.lines
            if line["operation"]["type"] == "SkewClock"
        ]
        return rates[0] if rates else 1.0

    def parent(self, run: Row) -> int | None:
        message = self.messages.get(run["message"])
        return None if message is None else message[3]

    def depth(self, run: Row) -> int:
        depth, above = 0, self.parent(run)
        known = {one["id"]: one for one in self.runs}
        while above in known and depth <= len(known):
            depth, above = depth + 1, self.parent(known[above])
        return depth

    # --- moments -----------------------------------------------------------------------------------------

    @cached_property
    def completion_s(self) -> float | None:
        """Until an agent first said that it is complete."""
        calls = [row[5] for row in self.messages.values() if row[3] is not None and row[4]]
        return round(min(calls) - self.zero, 3) if calls else None

    @cached_property
    def interventions(self) -> list[float]:
        """When a human stepped in, in seconds of the target's clock after the first task."""
        given = [line for line in self.lines if line["operation"]["type"] in INTERVENTIONS]
        first = next((n for n, line in enumerate(given) if _is(line, BEGUN)), len(given))
        if first == len(given):
            return []
        zero = given[first]["timestamp_unix"]
        return [
            round((line["timestamp_unix"] - zero) * self.rate, 3) for line in given[first + 1 :]
        ]

    @cached_property
    def watched_s(self) -> float:
        """How long the agents were watched, on the target's clock."""
        moments = [float(run[key]) for run in self.runs for key in ("created", "started", "ended")]
        moments += [row[5] for row in self.messages.values()]
        return round(max(moments) - self.zero, 3)

    def end(self, run: Row) -> float:
        """When a run ended, or was last seen."""
        return float(run["ended"] or 0) - self.zero if run["ended"] else self.watched_s

    # --- figures -----------------------------------------------------------------------------------------

    def by_provider(self, status: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for run in self.runs:
            provider = str(self.last["agents"].get(run["agent"], "unknown"))
            found[provider] = found.get(provider, 0) + (run["status"] == status)
        return found

    def latencies(self) -> dict[str, dict[str, float]]:
        """From the mention to the end of the run, by agent, of what was completed and says when."""
        found: dict[str, list[float]] = {}
        for run in self.runs:
            if run["status"] == "completed" and run["ended"]:
                found.setdefault(run["agent"], []).append(run["ended"] - run["created"])
        return {
            agent: {
                "mean_s": round(sum(each) / len(each), 3),
                "most_s": round(max(each), 3),
                "runs": len(each),
            }
            for agent, each in found.items()
        }

    def depths(self) -> list[tuple[float, int]]:
        """The deepest run that is under way, whenever that changes."""
        begun = [run for run in self.started if run["started"]]
        moments = sorted(
            {run["started"] for run in begun} | {r["ended"] for r in begun if r["ended"]}
        )
        found: list[tuple[float, int]] = []
        for at in moments:
            live = [r for r in begun if r["started"] <= at and (not r["ended"] or r["ended"] > at)]
            deepest = max((self.depth(run) for run in live), default=-1)
            if not found or found[-1][1] != deepest:
                found.append((round(at - self.zero, 3), deepest))
        return found

    def delegation(self) -> dict[str, dict[str, Any]]:
        """Who summoned others, who did the work, and who only watched."""
        found: dict[str, dict[str, Any]] = {}
        for run in self.started:
            row = found.setdefault(run["agent"], {"runs": 0, "posts": 0, "summoned": 0})
            row["runs"] += 1
            row["posts"] += int(self.last["posts"].get(f"s{run['id']}", 0))
            row["summoned"] += sum(self.parent(one) == run["id"] for one in self.runs)
        for row in found.values():
            worked = "worked" if row["posts"] else "watched"
            row["role"] = "delegated" if row["summoned"] else worked
        return found

    def figures(self) -> dict[str, object]:
        expected = sum(self.parent(run) is None for run in self.runs)
        return {
            "time_to_first_completion_s": self.completion_s,
            "spawns_triggered": len(self.started),
            "spawns_expected": expected,
            "spawns_refused": len(self.runs) - len(self.started),
            "completed_by_provider": self.by_provider("completed"),
            "failed_by_provider": self.by_provider("failed"),
            "human_interventions": len(self.interventions),
            "tthi_s": self.interventions[0] if self.interventions else None,
            "watched_s": self.watched_s,
            "latency_by_agent": self.latencies(),
            "deepest": max((self.depth(run) for run in self.started), default=0),
            "depth_over_time": [list(pair) for pair in self.depths()],
            "delegation": self.delegation(),
            "clock_rate": self.rate,
        }

    def measured(self) -> Measured:
        """Everything, for programs and for people."""
        figures = self.figures()
        failed: Any = figures["failed_by_provider"]
        completed: Any = figures["completed_by_provider"]
        rows = (
            ("Time to first @human complete", _span(self.completion_s)),
            ("Total spawns triggered", str(figures["spawns_triggered"])),
            ("Expected spawns (asked for by people)", str(figures["spawns_expected"])),
            ("Refused, with a reason", str(figures["spawns_refused"])),
            *((f"Completed by {name}", str(count)) for name, count in completed.items()),
            *((f"Failed by {name}", str(count)) for name, count in failed.items()),
            ("Human interventions", str(figures["human_interventions"])),
            ("TTHI", self._tthi()),
            ("Deepest run", str(figures["deepest"])),
        )
        return Measured(figures, rows, self._tables(), tuple(self.bars()))

    def _tthi(self) -> str:
        if self.interventions:
            return _span(self.interventions[0])
        return f"nobody had to step in for {_span(self.watched_s)}"

    def _tables(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        latency = self.latencies()
        return {
            "Agents": (
                ("agent", "runs", "posts", "summoned", "role", "mean latency", "slowest"),
                *(
                    (
                        agent,
                        str(row["runs"]),
                        str(row["posts"]),
                        str(row["summoned"]),
                        row["role"],
                        _span(latency.get(agent, {}).get("mean_s")),
                        _span(latency.get(agent, {}).get("most_s")),
                    )
                    for agent, row in self.delegation().items()
                ),
            )
        }

    def bars(self) -> Iterator[Bar]:
        """Every run as something that lasted."""
        for run in self.runs:
            asked = float(run["created"]) - self.zero
            begun = float(run["started"]) - self.zero if run["started"] else self.end(run)
            above = self.parent(run)
            tries = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
            yield Bar(
                f"s{run['id']}",
                str(run["agent"]),
                "" if above is None else f"s{above}",
                round(max(begun, asked), 3),
                round(max(self.end(run), begun), 3),
                str(run["status"]),
                f"{run['reason']}{tries}".strip(", "),
                round(max(begun - asked, 0.0), 3),
                not run["ended"] and run["status"] not in ("refused",),
            )


def _is(line: Line, kinds: Sequence[str]) -> bool:
    return line["operation"]["type"] in kinds


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
