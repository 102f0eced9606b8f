"""A driver of the real option B: tools of its MCP server, through a bridge that keeps the server alive.

    coordination_b.py ENDPOINT STATE VERB ARGUMENTS...

ENDPOINT is the socket of `doubles/mcp_client.py bridge`, STATE the state file: what `list` shows
is what would be there after a restart. The server names its tasks itself; our name is its description.
It never sets `isError`: `success` in the text is all that it says.
"""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3)))

from mutiny.doubles.mcp_client import call_socket
from mutiny.targets.drivers import common
from mutiny.targets.drivers.common import Answer

ABOUT_A_TASK = "not_owner|unknown_task|wrong_status"
"""`success: false` is all that it says: any of these may be the reason."""
REFUSED = {
    "claim_task": "nothing_to_claim",
    "start_task": ABOUT_A_TASK,
    "complete_task": ABOUT_A_TASK,
    "fail_task": ABOUT_A_TASK,
}


class Down(Exception):
    """No server answers; the command itself was not given."""

    def __init__(self, said: Answer) -> None:
        super().__init__(said)
        self.said = said


class Driver:
    """Speaks to one server."""

    def __init__(self, endpoint: str, state: str) -> None:
        self._endpoint = endpoint
        self._state = state

    def call(self, tool: str, **arguments: Any) -> Answer:
        """One tool call; `success: false` becomes a refusal."""
        return judged(tool, call_socket(self._endpoint, tool, arguments))

    def _names(self) -> dict[str, str]:
        said = call_socket(self._endpoint, "get_all_tasks", {})
        tasks = said.get("tasks")
        if said.get("error") == "server_down":
            raise Down(said)
        return common.labels(tasks) if isinstance(tasks, list) else {}

    def _about(self, tool: str, name: str, **arguments: Any) -> Answer:
        """What a worker says about a task."""
        names = self._names()
        own = next((own for own, ours in names.items() if ours == name), name)
        answer = self.call(tool, task_id=own, **arguments)
        return {**answer, "task": name} if answer.get("ok") else answer

    def add(self, name: str, priority: int, hints: str, depends: list[str]) -> Answer:
        """Our name is the description."""
        names = self._names()
        if name in names.values():
            return common.unable("the board gives ids itself: nobody can add a task twice")
        own = {ours: theirs for theirs, ours in names.items()}
        answer = self.call(
            "create_task",
            description=name,
            priority=priority,
            dependencies=[own.get(one, one) for one in depends],
            hints=hints,
        )
        return {**answer, "task": name} if answer.get("ok") else answer

    def batch(self, path: str) -> Answer:
        """One after the other: its own batch cannot name dependencies among new tasks."""
        for task in common.batch_in(path):
            answer = self.add(task["id"], 5, "", task["depends"])
            if not answer.get("ok"):
                return answer
        return {"ok": True}

    def claim(self, worker: str) -> Answer:
        """The best task."""
        answer = self.call("claim_task", agent_id=worker)
        task = answer.get("task")
        if answer.get("ok") and isinstance(task, dict):
            answer["task"] = task.get("description")
        return answer

    def beat(self, worker: str) -> Answer:
        """A sign of life; who is not registered is registered first."""
        answer = self.call("heartbeat", agent_id=worker)
        if answer.get("ok") or answer.get("error") == "server_down":
            return answer
        return self.call("register_agent", agent_id=worker, role="worker")

    def show(self) -> Answer:
        """The state file in our words; none is an empty board, the server makes it with the first task."""
        if not os.path.exists(self._state):
            return {"ok": True, "tasks": []}
        found = common.state_in(self._state)
        if found["ok"]:
            found["tasks"] = common.rows(found["tasks"], owner="claimed_by", named=False)
        return found

    def speak(self, verb: str, words: list[str]) -> Answer:
        """One verb of Mutiny's."""
        try:
            return self._speak(verb, words)
        except Down as down:
            return {**down.said, "happened": "no"}

    def _speak(self, verb: str, words: list[str]) -> Answer:
        if verb == "list":
            return self.show()
        if verb == "init":
            return self.call("init_coordination", goal="mutiny")
        if verb == "status":
            return self.call("get_status")
        if verb == "add":
            return self.add(*common.new_task(words))
        if verb == "add-batch":
            return self.batch(words[0])
        if verb == "claim":
            return self.claim(words[0])
        if verb == "heartbeat":
            return self.beat(words[0])
        worker, name, *more = words
        texts = {"complete": "output", "fail": "error"}
        given = {texts[verb]: common.text_of(more)} if verb in texts else {}
        return self._about(f"{verb}_task", name, agent_id=worker, **given)


def judged(tool: str, said: Answer) -> Answer:
    """A tool's answer in our words."""
    if said.get("error") == "server_down":
        return said
    if "error" in said and "success" not in said:
        return common.refused("", str(said["error"]))  # it has a text, and no class of refusals
    if said.get("success") is False:
        return common.refused(
            REFUSED.get(tool, ""), str(said.get("message", f"{tool}: success is false"))
        )
    return {key: value for key, value in said.items() if key not in ("success", "tasks")}


if __name__ == "__main__":
    sys.exit(common.told(Driver(sys.argv[1], sys.argv[2]).speak(sys.argv[3], sys.argv[4:])))
