"""Long sessions: agents build a project in phases, with checkpoints from which they recover."""
