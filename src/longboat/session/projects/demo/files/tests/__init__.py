"""Tests of the greeting."""
