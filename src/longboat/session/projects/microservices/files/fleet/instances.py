"""Instances of services: where they are, and what they can bear."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Instance"]


@dataclass(frozen=True)
class Instance:
    """One running copy of a service."""

    service: str
    address: str
    weight: int = 1

    def __post_init__(self) -> None:
        if not self.service or ":" not in self.address:
            raise ValueError("an instance has a service and an address HOST:PORT")
        if self.weight < 1:
            raise ValueError("an instance bears at least something")
