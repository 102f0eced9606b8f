"""Instances are checked."""

import unittest

from fleet.instances import Instance


class Instances(unittest.TestCase):
    def test_bad_ones_are_refused(self):
        self.assertEqual(Instance("web", "a:1").weight, 1)
        for bad in (("", "a:1", 1), ("web", "a", 1), ("web", "a:1", 0)):
            with self.assertRaises(ValueError):
                Instance(*bad)
