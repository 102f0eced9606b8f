"""Chaos engineering for multi-agent coding orchestrators."""

__version__ = "0.1.0"
"""The same as in pyproject.toml; asking the installed package for it would cost 20 ms a run."""
