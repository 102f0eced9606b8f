"""A lookup visits few nodes: counted, not timed."""

import unittest

from tinybase.btree import BTree


class Cost(unittest.TestCase):
    def test_a_lookup_in_five_thousand_rows(self):
        tree = BTree(16)
        for number in range(5000):
            tree.put(number, number)
        tree.visits = 0
        self.assertEqual(tree.get(4321), 4321)
        self.assertLessEqual(tree.visits, 6)
