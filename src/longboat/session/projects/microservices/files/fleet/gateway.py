"""The gateway: finds an instance, calls it through its breaker, and tries another one when that fails."""

from __future__ import annotations

from collections.abc import Callable

from fleet.balancer import RoundRobin
from fleet.breaker import Breaker, Open
from fleet.instances import Instance
from fleet.registry import Registry, UnknownService
from fleet.settings import Settings
from fleet.tracing import Tracer

__all__ = ["Gateway", "Unavailable"]

Send = Callable[[Instance, str, str], str]


class Unavailable(RuntimeError):
    """No instance could answer."""


class Gateway:
    """One door for all requests."""

    def __init__(
        self, registry: Registry, settings: Settings, clock: Callable[[], float], send: Send
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._send = send
        self._turns = RoundRobin()
        self._breakers: dict[Instance, Breaker] = {}
        self.tracer = Tracer(clock)

    def _breaker(self, instance: Instance) -> Breaker:
        if instance not in self._breakers:
            limit = int(self._settings.number("failures"))
            self._breakers[instance] = Breaker(self._clock, limit, self._settings.number("rest_s"))
        return self._breakers[instance]

    def request(self, service: str, body: str, header: str = "") -> str:
        """Send a request to some instance that can answer it."""
        with self.tracer.span(f"request {service}", header) as span:
            try:
                left = self._registry.find(service)
            except UnknownService:
                raise Unavailable(f"nobody offers {service}") from None
            for _ in range(len(left)):
                instance = self._turns.choose(left)
                try:
                    answer = self._breaker(instance).call(
                        lambda one=instance: self._send(one, body, span.header())
                    )
                except (Open, OSError):
                    left = [one for one in left if one is not instance]
                    continue
                span.tags["instance"] = instance.address
                return answer
            raise Unavailable(f"no instance of {service} answers")
