"""The greeting."""

__all__ = ["greet"]


def greet(name: str) -> str:
    """A greeting by name; without one, a greeting of everybody."""
    return f"Hello, {name.strip() or 'everybody'}!"
