"""The dashboard: the state of the broker as one page."""

from __future__ import annotations

import html

from redqueue.broker import Broker

__all__ = ["page"]


def page(broker: Broker) -> str:
    """A page that shows how many jobs are where, and the dead ones."""
    rows = "".join(f"<tr><th>{name}</th><td>{n}</td></tr>" for name, n in broker.stats().items())
    dead = "".join(f"<li>{html.escape(job.payload)}</li>" for job in broker.dead)
    return f"<h1>RedQueue</h1><table>{rows}</table><h2>Dead letters</h2><ul>{dead}</ul>"
