"""What lives on after a schedule is let through, call by call, until it ends by itself.

Insight: a filter cannot be taken off a process. A daemon that a traced command left behind asks at
every trapped call for the rest of its life, and when nobody holds the listener the kernel answers
ENOSYS: a program that worked well would fail, and Mutiny would take its own doing for a bug. The
last process behind a listener ends it, so that whoever answers needs no other sign to stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from mutiny.syscalls.listeners import Listeners, Started, Trapped


def let_through(listeners: Listeners, kill_world: Callable[[], None]) -> threading.Thread | None:
    """Answer every further call with "go on"; returns the thread that does it, if one is needed.

    The listeners belong to it from now on: it closes them with the last traced process.
    ``kill_world``: what to do when nobody can answer any more, which must not go unseen.
    """
    listeners.close_doors()
    if listeners.live == 0:
        listeners.close()
        return None
    thread = threading.Thread(
        target=_serve, args=(listeners, kill_world), name="let-through", daemon=True
    )
    thread.start()
    return thread


def _serve(listeners: Listeners, kill_world: Callable[[], None]) -> None:
    try:
        while listeners.live > 0:
            for event in listeners.receive(None):
                if isinstance(event, Trapped):
                    listeners.answer(event, go_on=True)
                elif isinstance(event, Started):
                    listeners.go(event)
    except BaseException:
        kill_world()  # it must not go on alone; the error itself is shown as that of a thread
        raise
    finally:
        listeners.close()
