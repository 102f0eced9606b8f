"""RedQueue: a task queue that speaks the Redis protocol."""

__all__ = ["broker", "cli", "jobs", "resp", "scheduler", "server", "web", "worker"]
