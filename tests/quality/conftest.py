"""The table of all plants, at the end of this suite."""

from plant_table import pytest_configure

__all__ = ["pytest_configure"]
