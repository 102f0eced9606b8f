"""Tests of Fleet."""
