"""Mutants that were read and say the same as longboat: the digest in their name, and the reason.

They are survivors that nothing could find: what they change cannot be seen from outside.
"""

EQUIVALENT: dict[str, str] = {}
