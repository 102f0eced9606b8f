"""The load balancer: which instance gets the next request."""

from __future__ import annotations

from collections import Counter

from fleet.instances import Instance

__all__ = ["LeastBusy", "RoundRobin"]


class RoundRobin:
    """One after the other; those that bear more come more often."""

    def __init__(self) -> None:
        self._credit: Counter[Instance] = Counter()

    def choose(self, instances: list[Instance]) -> Instance:
        """The next one: smooth weighted turns."""
        if not instances:
            raise ValueError("nobody to choose from")
        for one in instances:
            self._credit[one] += one.weight
        best = max(instances, key=lambda one: (self._credit[one], -instances.index(one)))
        self._credit[best] -= sum(one.weight for one in instances)
        return best


class LeastBusy:
    """Whoever has the fewest requests under way for what it can bear."""

    def __init__(self) -> None:
        self.busy: Counter[Instance] = Counter()

    def choose(self, instances: list[Instance]) -> Instance:
        """The least busy one; its request begins."""
        if not instances:
            raise ValueError("nobody to choose from")
        best = min(instances, key=lambda one: (self.busy[one] / one.weight, one.address))
        self.busy[best] += 1
        return best

    def done(self, instance: Instance) -> None:
        """A request has ended."""
        if self.busy[instance] <= 0:
            raise ValueError(f"{instance.address} has no request under way")
        self.busy[instance] -= 1
