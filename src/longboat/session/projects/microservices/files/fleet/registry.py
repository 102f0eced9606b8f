"""Service discovery: who is there, as long as it says so."""

from __future__ import annotations

from collections.abc import Callable

from fleet.instances import Instance

__all__ = ["Registry", "UnknownService"]


class UnknownService(LookupError):
    """Nobody offers such a service now."""


class Registry:
    """Instances with leases; who does not renew is forgotten."""

    def __init__(self, clock: Callable[[], float], lease_s: float = 30.0) -> None:
        self._clock = clock
        self._lease_s = lease_s
        self._leases: dict[Instance, float] = {}
        self._watchers: list[Callable[[str], None]] = []

    def register(self, instance: Instance) -> None:
        """An instance is there, or still there."""
        fresh = instance not in self._leases
        self._leases[instance] = self._clock() + self._lease_s
        if fresh:
            self._tell(instance.service)

    def leave(self, instance: Instance) -> bool:
        """An instance goes; False when nobody knew it."""
        if self._leases.pop(instance, None) is None:
            return False
        self._tell(instance.service)
        return True

    def sweep(self) -> list[Instance]:
        """Forget whose lease is over; who that was."""
        gone = [one for one, until in self._leases.items() if until <= self._clock()]
        for one in gone:
            self.leave(one)
        return gone

    def find(self, service: str) -> list[Instance]:
        """All instances of a service, in a fixed order."""
        self.sweep()
        found = sorted((one for one in self._leases if one.service == service), key=_address)
        if not found:
            raise UnknownService(service)
        return found

    def watch(self, watcher: Callable[[str], None]) -> None:
        """Be told the name of every service that changes."""
        self._watchers.append(watcher)

    def _tell(self, service: str) -> None:
        for watcher in self._watchers:
            watcher(service)


def _address(instance: Instance) -> str:
    return instance.address
