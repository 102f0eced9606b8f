"""A pid that is used again: the number of a process that is gone comes to mean somebody else's.

Insight: a kernel gives numbers in order and wraps around only after millions, so that waiting for it shows
nothing; but whoever owns a pid namespace may say which number comes next. The stranger leads a session
and a process group of its own, so that a signal to the old group would hit it, too. It dies with the box.
"""

from __future__ import annotations

from mutiny.box.box import Box
from mutiny.faults import namespaces
from mutiny.model.result import OperationResult

TECHNIQUE = "ns_last_pid in the box's pid namespace"
STRANGER = "mutiny-stranger"
"""By this word its command line is known."""
STRANGER_S = 600
_BE_A_STRANGER = """
if os.fork():
    os._exit(os.wait()[1] >> 8)

def stranger(wanted):
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(wanted - 1))
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            quiet = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            os.execv(sys.executable, [sys.executable, "-IS", "-c",
                     "import time; time.sleep(%d)" % order["seconds"], order["name"]])
        os.close(told)
        if child == wanted:
            os.read(ready, 1)
            return
        os.close(ready)
        os.kill(child, 9)
        os.waitpid(child, 0)
    print("the number %d did not come up" % wanted, file=sys.stderr)
    os._exit(1)

for wanted in order["wanted"]:
    stranger(wanted)
os._exit(0)
"""


def why_not(box: Box) -> str | None:
    """Why it cannot be done here; None when it can."""
    return namespaces.why_no_namespace(box, "pid")


def use_again(box: Box, pids: list[int]) -> OperationResult:
    """Let each of these numbers, of which nobody is alive, mean a process of ours."""
    reason = why_not(box)
    if reason is not None:
        return OperationResult(1, stderr=reason, fired=False, technique=TECHNIQUE)
    taken = {one.pid for one in box.processes()}
    used = [pid for pid in pids if pid in taken]
    order: dict[str, object] = {"wanted": pids, "seconds": STRANGER_S, "name": STRANGER}
    done = None if used else namespaces.help_in(box, ["pid"], _BE_A_STRANGER, order)
    if done is None or done.returncode != 0:
        why = f"pid {used[0]} is still used" if done is None else done.stderr.strip()
        return OperationResult(1, stderr=why, fired=False, technique=TECHNIQUE)
    text = f"pid {', '.join(map(str, pids))} used again"
    return OperationResult(stdout=text, fired=bool(pids), technique=TECHNIQUE)
