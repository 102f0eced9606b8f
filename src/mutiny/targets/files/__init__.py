"""Target files that ship with Mutiny."""
