"""Tests of RedQueue."""
