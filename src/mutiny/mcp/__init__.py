"""Mutiny for agents: an MCP server whose tools are Mutiny's own commands."""
