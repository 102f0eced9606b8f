"""Mutants of longboat: small faults made by operators, not by hand, and what finds them."""
