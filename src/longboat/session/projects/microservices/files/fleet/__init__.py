"""Fleet: what services need to find and to bear each other."""

__all__ = ["balancer", "breaker", "gateway", "instances", "registry", "settings", "tracing"]
