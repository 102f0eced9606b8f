"""stub"""

from longboat.commands import Answer
from longboat.config import Config
from longboat.store import Home


def doctor(home: Home, config: Config, *, repair: bool) -> Answer:
    """stub"""
    return Answer({}, "")
