"""The greeting."""

__all__ = ["greet"]


def greet(name: str) -> str:
    """A greeting by name."""
    return f"Hello, {name.strip()}!"
