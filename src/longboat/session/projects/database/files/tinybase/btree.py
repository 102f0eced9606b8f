"""A B-tree: sorted keys in nodes of bounded size, found in logarithmic time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

__all__ = ["BTree"]


class _Node:
    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.children: list[_Node] = []


class BTree:
    """A sorted map. Leaves hold the values; what is deleted leaves a gap that splits away."""

    def __init__(self, order: int = 16) -> None:
        if order < 3:
            raise ValueError("a node holds at least three keys")
        self._order = order
        self._root = _Node()
        self.size = 0
        self.visits = 0

    def _leaf(self, key: Any) -> list[tuple[_Node, int]]:
        """The way from the root to the leaf of a key: nodes with the child that was taken."""
        way, node = [], self._root
        while node.children:
            self.visits += 1
            at = bisect_right(node.keys, key)
            way.append((node, at))
            node = node.children[at]
        self.visits += 1
        way.append((node, bisect_left(node.keys, key)))
        return way

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key."""
        leaf, at = self._leaf(key)[-1]
        found = at < len(leaf.keys) and leaf.keys[at] == key
        return leaf.values[at] if found else default

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        way = self._leaf(key)
        leaf, at = way[-1]
        if at < len(leaf.keys) and leaf.keys[at] == key:
            leaf.values[at] = value
            return
        leaf.keys.insert(at, key)
        leaf.values.insert(at, value)
        self.size += 1
        while len(way[-1][0].keys) > self._order:
            self._split(way)

    def _split(self, way: list[tuple[_Node, int]]) -> None:
        node = way.pop()[0]
        middle = len(node.keys) // 2
        right, up = _Node(), node.keys[middle]
        if node.children:
            right.keys, node.keys = node.keys[middle + 1 :], node.keys[:middle]
            right.children, node.children = node.children[middle + 1 :], node.children[: middle + 1]
        else:
            right.keys, node.keys = node.keys[middle:], node.keys[:middle]
            right.values, node.values = node.values[middle:], node.values[:middle]
        if not way:
            self._root = _Node()
            self._root.children = [node]
            way.append((self._root, 0))
        parent, at = way[-1]
        parent.keys.insert(at, up)
        parent.children.insert(at + 1, right)

    def delete(self, key: Any) -> bool:
        """Remove a key; False when it is not there."""
        leaf, at = self._leaf(key)[-1]
        if at >= len(leaf.keys) or leaf.keys[at] != key:
            return False
        del leaf.keys[at], leaf.values[at]
        self.size -= 1
        return True

    def items(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """Keys and values in order, from `low` to `high`, both included."""
        yield from self._walk(self._root, low, high)

    def _walk(self, node: _Node, low: Any, high: Any) -> Iterator[tuple[Any, Any]]:
        if not node.children:
            for key, value in zip(node.keys, node.values, strict=True):
                if (low is None or key >= low) and (high is None or key <= high):
                    yield key, value
            return
        first = 0 if low is None else bisect_right(node.keys, low)
        last = len(node.children) - 1 if high is None else bisect_right(node.keys, high)
        for child in node.children[first : last + 1]:
            yield from self._walk(child, low, high)
