"""Greets people."""

__all__ = ["greeting"]
