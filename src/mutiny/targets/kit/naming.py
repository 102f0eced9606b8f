"""Names: ours, and those that a program gives itself.

A program that takes no names tells each in an answer, or shows it in its records. Until then nobody knows
what it calls whom we have asked for; a single stranger among its records is the single one that is due.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mutiny.foreign import parse
from mutiny.model.result import OWN_NAME
from mutiny.system.files import BoxPath

UNTOLD = "nobody was told what the target calls"


class Names:
    """What each is called by us and by the program; without an entry it is called the same, or as nobody
    of the program's is.
    """

    def __init__(self, nobody: str = "", kept: BoxPath | None = None) -> None:
        self._own: dict[str, str] = {}
        self._untold: tuple[str, ...] = ()
        self._nobody = nobody
        self._kept = kept
        """A file that outlives the box: whoever goes on from its files knows the names, too."""
        if kept is not None and kept.exists():
            table = parse(kept.read_text())
            self._own, self._untold = table["own"], tuple(table["untold"])

    def own(self, ours: str) -> str:
        """The program's name of one of ours."""
        return self._own.get(ours, self._nobody or ours)

    def ours(self, own: str) -> str:
        """Our name of one of the program's."""
        return self.by_own().get(own, own)

    def by_own(self) -> dict[str, str]:
        """The program's name -> ours."""
        return {own: ours for ours, own in self._own.items()}

    def learn(self, ours: str, own: str) -> None:
        """The program has said or shown a name; our name of one may be its name of another."""
        if self._own.get(ours) == own and ours not in self._untold:
            return
        self._own[ours] = own
        self._untold = tuple(one for one in self._untold if one != ours)
        self._keep()

    def ask(self, ours: str) -> None:
        """A new name was asked for; the one that the program gives it is not known yet."""
        self._own.pop(ours, None)
        self._untold = (*(one for one in self._untold if one != ours), ours)
        self._keep()

    def mentioned(self, ours: str | None) -> dict[str, object]:
        """What a result tells of the program's name for one of ours; nothing where it is ours."""
        own = self._own.get(ours or "", ours)
        return {} if own == ours else {OWN_NAME: own}

    @property
    def untold(self) -> tuple[str, ...]:
        """Ours whose names the program was asked for and has not told, the newest last."""
        return self._untold

    def shown(self, records: Iterable[str]) -> tuple[str, ...]:
        """What the program calls its records: a single stranger is the single one that is untold.

        Returns strangers that may be any of several of ours, or somebody whom nobody asked for.
        """
        known = self.by_own()
        strangers = tuple(one for one in records if one not in known)
        if len(strangers) == 1 and len(self._untold) == 1:
            self.learn(self._untold[0], strangers[0])
            return ()
        return strangers if self._untold else ()

    def _keep(self) -> None:
        if self._kept is not None:
            table = {"own": self._own, "untold": self._untold}
            self._kept.replace_bytes(json.dumps(table).encode())
