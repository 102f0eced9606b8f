"""Changes of every shape that git knows: what a commit can do beside adding lines of text.

It removes a file, makes one executable, and adds an empty one, one of all bytes, one that nobody would name
so, and a link to nowhere. Who copies an agent's work instead of merging it loses one of them.
"""

from __future__ import annotations

import os

OLD_FILES = {
    "old/notes.md": "What nobody needs any more.\n",
    "old/tool.sh": "#!/bin/sh\nexit 0\n",
}
"""What a source repository has from its first commit on, to be removed and to be made executable."""
FOLDERS = ("old", "shapes")
_REMOVED, _TOOL = OLD_FILES
_FILE, _PROGRAM, _LINK = 0o100644, 0o100755, 0o120000


def reshape(cwd: str, label: str) -> tuple[list[str], dict[str, str]]:
    """Change the tree in every shape; the paths that are gone, and the mode and size of all others as git
    tells them.
    """
    told = {}
    old, tool = os.path.join(cwd, _REMOVED), os.path.join(cwd, _TOOL)
    removed = [_REMOVED] if os.path.lexists(old) else []
    if removed:
        os.unlink(old)
    if os.path.isfile(tool):
        os.chmod(tool, 0o755)
        told[_TOOL] = f"{_PROGRAM:o} {os.path.getsize(tool)}"
    word = label.encode()
    for name, mode, content in (
        ("empty", _FILE, b""),
        ("all bytes.bin", _FILE, bytes(range(256)) + b"\r\n" + word),
        ("-\u00fc 'quoted'.txt", _FILE, word + b" without an end of line"),
        (".run", _PROGRAM, b"#!/bin/sh\n# " + word + b"\n"),
        ("nowhere", _LINK, b"nothing/" + word),
    ):
        path = f"shapes/{label}/{name}"
        _make(os.path.join(cwd, path), mode, content)
        told[path] = f"{mode:o} {len(content)}"
    return removed, told


def _make(path: str, mode: int, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)  # an earlier turn for the same token has made it
    if mode == _LINK:
        os.symlink(content, path)
        return
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode & 0o777)
