"""Power loss: what is left when only what was synced survives.

Insight: two trees are kept beside the real one. What a process sees (the visible names) and what the
disk has (durable names and contents). Names change the visible tree at once; content becomes
durable at ``fsync`` only. The model is the worst case that a file system may show: each file keeps
what was last synced, a new one is empty. A journalling file system makes names durable in their order,
at the latest with the next sync of anything, but perhaps much sooner: so there are two worst cases, all
names kept (with the content missing) and all names since the last sync lost. With ``strict=True`` a
name is durable only when its own directory was synced, which is all that POSIX promises.
"""

from __future__ import annotations

import os
import stat as modes
from dataclasses import dataclass, field
from pathlib import Path

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call
from mutiny.syscalls.memory import real
from mutiny.syscalls.snapshots import Content, Entry, Snapshots, State
from mutiny.system.files import BoxPath


@dataclass(slots=True, eq=False)
class Node:
    """A file, directory, link or socket: what the disk has of it."""

    mode: int
    data: Content | None = None
    target: str | None = None
    visible: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    writes_through: bool = False
    """It was opened with O_SYNC: every write is durable."""


class Durability:
    """Follows the calls below one directory; give ``follow`` to ``BeforeEach``.

    A call is followed before the kernel does it, so that each rule first looks whether the call can
    succeed. ``states`` holds the durable state before each call: what a power loss there leaves.
    ``behind`` is the same with the latest names lost; None where there are none to lose.
    """

    def __init__(self, directory: Path, store: Path, *, strict: bool = False) -> None:
        self._directory = real(directory)
        self._store = store
        self._strict = strict
        there = os.path.isdir(self._directory)  # noqa: PTH112
        self._root = Node(os.lstat(self._directory).st_mode if there else modes.S_IFDIR | 0o755)
        self._journal: list[tuple[Node, str, Node | None]] = []
        """Names that have changed and are not durable yet: directory, name, what it means now."""
        self._unfinished: set[Node] = set()
        self.states: list[State] = []
        self.behind: list[State | None] = []
        if not there:
            return  # it is still to be made; nothing of it is durable
        start = Snapshots(directory, store).finish()
        nodes: dict[str, Node] = {"": self._root}
        groups: dict[int, Node] = {}
        for name in sorted(start.entries):
            entry = start.entries[name]
            node = groups.get(entry.link_group) if entry.link_group else None
            if node is None:
                node = Node(entry.mode, entry.content, entry.target)
            if entry.link_group:
                groups[entry.link_group] = node
            nodes[name] = node
            parent, _, last = name.rpartition("/")
            nodes[parent].visible[last] = nodes[parent].durable[last] = node

    def follow(self, call: Call) -> None:
        """Keep the durable state before a call, then expect what the call will do."""
        self._finish_earlier()
        self.states.append(State(call, self._entries(kept=True)))
        self.behind.append(State(call, self._entries(kept=False)) if self._journal else None)
        parts = [self._parts(file) for file in call.files]
        rule = _RULES.get(call.name)
        if rule is not None:
            rule(self, call, parts)

    def finish(self) -> State:
        """Return what a power loss after the last call leaves, all names kept."""
        self._finish_earlier()
        return State(None, self._entries(kept=True))

    def finish_behind(self) -> State | None:
        """The same with the latest names lost; None when all of them were synced."""
        self._finish_earlier()
        return State(None, self._entries(kept=False)) if self._journal else None

    # --- the rules, one for each family of calls

    def _open(self, call: Call, parts: list[list[str] | None]) -> None:
        names = parts[0]
        if names is None:
            return
        node = self._find(names)
        if node is None:
            if call.flags & tables.O_CREAT and os.path.isdir(os.path.dirname(call.files[0])):  # noqa: PTH112, PTH120
                self._name(names, node := Node(modes.S_IFREG | 0o644, Content.of(b"")))
        elif call.flags & tables.O_CREAT and call.flags & tables.O_EXCL:
            return  # will fail
        elif call.flags & tables.O_TRUNC and node.data is not None:
            node.data = Content.of(
                b""
            )  # worst case: the end of the old content is durable, no new one
        if node is not None and call.flags & tables.O_DSYNC:
            node.writes_through = True
            self._unfinished.add(node)

    def _truncate(self, call: Call, parts: list[list[str] | None]) -> None:
        node = self._find(parts[0]) if parts[0] is not None else None
        if node is not None and node.data is not None:
            node.data = Content.of(node.data.read()[: call.length])

    def _sync(self, call: Call, parts: list[list[str] | None]) -> None:
        for directory, name, meaning in self._journal:
            _set(directory.durable, name, meaning)
        self._journal.clear()
        names = parts[0]
        node = self._find(names) if names is not None else None
        if node is None:
            return
        if call.name == "syncfs":
            self._sync_everything(self._root, self._directory)
        elif modes.S_ISDIR(node.mode):
            node.durable = dict(node.visible)
        else:
            self._sync_content(node, call.files[0])

    def _rename(self, call: Call, parts: list[list[str] | None]) -> None:
        if len(parts) != 2 or not os.path.lexists(call.files[0]):
            return
        source, target = parts
        if call.flags & tables.RENAME_NOREPLACE and os.path.lexists(call.files[1]):
            return
        node = self._find(source) if source is not None else None
        other = self._find(target) if target is not None else None
        if node is not None and node is other:
            return  # two names of one file: rename does nothing
        if source is not None:
            self._unname(source)
        if target is not None:
            # From outside of the directory comes something whose durable content nobody knows.
            self._name(target, node or Node(os.lstat(call.files[0]).st_mode, Content.of(b"")))
        if call.flags & tables.RENAME_EXCHANGE and source is not None and other is not None:
            self._name(source, other)

    def _remove(self, call: Call, parts: list[list[str] | None]) -> None:
        names = parts[0]
        node = self._find(names) if names is not None else None
        wants_directory = call.name == "rmdir" or bool(call.flags & tables.AT_REMOVEDIR)
        if names is None or node is None or wants_directory != modes.S_ISDIR(node.mode):
            return
        if not (wants_directory and node.visible):
            self._unname(names)

    def _make_directory(self, call: Call, parts: list[list[str] | None]) -> None:
        if parts[0] is not None and self._find(parts[0]) is None:
            self._name(parts[0], Node(modes.S_IFDIR | 0o755))

    def _make_special(self, call: Call, parts: list[list[str] | None]) -> None:
        if parts[0] is None or self._find(parts[0]) is not None:
            return
        if call.name.startswith("symlink"):
            # Its target is an argument that is not a file of ours; it is read when it is there.
            node = Node(modes.S_IFLNK | 0o777, target=None)
            self._unfinished.add(node)
            self._name(parts[0], node)
        else:
            self._name(parts[0], Node(modes.S_IFSOCK | 0o755))

    def _link(self, call: Call, parts: list[list[str] | None]) -> None:
        if len(parts) != 2 or parts[1] is None or self._find(parts[1]) is not None:
            return
        node = self._find(parts[0]) if parts[0] is not None else None
        self._name(parts[1], node or Node(modes.S_IFREG | 0o644, Content.of(b"")))

    # --- the trees

    def _parts(self, file: str) -> list[str] | None:
        if not file.startswith(self._directory + "/"):
            return [] if file == self._directory else None
        return file[len(self._directory) + 1 :].split("/")

    def _find(self, names: list[str]) -> Node | None:
        node: Node | None = self._root
        for name in names:
            node = node.visible.get(name) if node is not None else None
        return node

    def _name(self, names: list[str], node: Node) -> None:
        parent = self._find(names[:-1])
        if parent is None:
            return
        self._change(parent, names[-1], node)

    def _unname(self, names: list[str]) -> None:
        parent = self._find(names[:-1])
        if parent is None:
            return
        self._change(parent, names[-1], None)

    def _change(self, directory: Node, name: str, meaning: Node | None) -> None:
        _set(directory.visible, name, meaning)
        if not self._strict:
            self._journal.append((directory, name, meaning))

    def _sync_content(self, node: Node, path: str) -> None:
        try:
            status = os.lstat(path)
            if modes.S_ISREG(status.st_mode):
                below = path[len(self._directory) + 1 :]
                node.data = Content.of((BoxPath(self._directory) / below).read_bytes())
                node.mode = status.st_mode
        except (FileNotFoundError, NotADirectoryError):
            return  # synced after it was removed: nobody will ever see it

    def _sync_everything(self, node: Node, path: str) -> None:
        node.durable = dict(node.visible)
        for name, child in node.visible.items():
            below = f"{path}/{name}"
            if modes.S_ISDIR(child.mode):
                self._sync_everything(child, below)
            else:
                self._sync_content(child, below)

    def _finish_earlier(self) -> None:
        """See what earlier calls have done by now: links have targets, and writes to files that
        were opened with O_SYNC are durable.
        """
        if self._unfinished:
            self._each_visible(self._root, self._directory)

    def _each_visible(self, node: Node, path: str) -> None:
        for name, child in node.visible.items():
            below = f"{path}/{name}"
            if child.visible:
                self._each_visible(child, below)
            elif child in self._unfinished and child.writes_through:
                self._sync_content(child, below)
            elif child in self._unfinished and os.path.islink(below):  # noqa: PTH114
                child.target = os.readlink(below)  # noqa: PTH115
                self._unfinished.discard(child)

    def _entries(self, *, kept: bool) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        self._collect(self._root, "", found, visible=kept and not self._strict)
        return found

    def _collect(self, node: Node, prefix: str, found: dict[str, Entry], *, visible: bool) -> None:
        for name, child in (node.visible if visible else node.durable).items():
            path = prefix + name
            if modes.S_ISLNK(child.mode) and child.target is None:
                continue  # not there yet
            found[path] = Entry(child.mode, child.data, child.target)
            if modes.S_ISDIR(child.mode):
                self._collect(child, f"{path}/", found, visible=visible)


def _set(names: dict[str, Node], name: str, meaning: Node | None) -> None:
    if meaning is None:
        names.pop(name, None)
    else:
        names[name] = meaning


_RULES = {
    **dict.fromkeys(tables.OPENS, Durability._open),
    **dict.fromkeys(tables.SYNCS, Durability._sync),
    **dict.fromkeys(tables.RENAMES, Durability._rename),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), Durability._remove),
    **dict.fromkeys(("mkdir", "mkdirat"), Durability._make_directory),
    **dict.fromkeys(("symlink", "symlinkat", "bind"), Durability._make_special),
    **dict.fromkeys(("link", "linkat"), Durability._link),
    **dict.fromkeys(("truncate", "ftruncate"), Durability._truncate),
}
