"""The tree against a dictionary."""

import random
import unittest

from tinybase.btree import BTree


class Tree(unittest.TestCase):
    def test_like_a_dictionary(self):
        numbers, tree, known = random.Random(7), BTree(4), {}
        for _ in range(800):
            key = numbers.randrange(200)
            if numbers.random() < 0.3:
                self.assertEqual(tree.delete(key), known.pop(key, None) is not None)
            else:
                tree.put(key, known.setdefault(key, numbers.random()))
            self.assertEqual(tree.size, len(known))
        self.assertEqual(list(tree.items()), sorted(known.items()))
        self.assertEqual(
            [k for k, _ in tree.items(50, 60)], sorted(k for k in known if 50 <= k <= 60)
        )

    def test_small_nodes_are_refused(self):
        with self.assertRaises(ValueError):
            BTree(2)
        self.assertEqual(BTree().get("x", "nothing"), "nothing")
