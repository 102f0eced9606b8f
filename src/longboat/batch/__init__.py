"""`longboat batch`: plan tasks, run them in workspaces, gate them, and merge what passed."""
