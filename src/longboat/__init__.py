"""longboat: a small orchestrator of coding agents, one tmux session and one git worktree each.

It ships with Mutiny as the reference target: it keeps its promises at every crash point, and the
bugs that it can be asked to have (``LONGBOAT_PLANT``) are listed in :mod:`longboat.plants`.
"""

__version__ = "0.1.0"
