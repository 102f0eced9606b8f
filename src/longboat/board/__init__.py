"""Three task boards with one meaning: files (A), an MCP broker (B), an orchestrator (C).

What a verb does is decided in one place (`transitions`, `leadership`), by values alone; a board is
that meaning plus a way to keep it (`file_store`, `sqlite_store`, `journal`).
"""
