"""Stand-ins for `claude`, `codex` and `gemini` without a terminal, as orchestrators of runs start them."""
