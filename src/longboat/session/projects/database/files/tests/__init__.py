"""Tests of TinyBase."""
