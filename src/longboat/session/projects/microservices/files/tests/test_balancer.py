"""Balancing: turns by weight, and the least busy."""

import unittest
from collections import Counter

from fleet.balancer import LeastBusy, RoundRobin
from fleet.instances import Instance

A, B = Instance("web", "a:1", 3), Instance("web", "b:1", 1)


class Balance(unittest.TestCase):
    def test_turns_follow_the_weights(self):
        turns = RoundRobin()
        chosen = [turns.choose([A, B]) for _ in range(8)]
        self.assertEqual(Counter(chosen), {A: 6, B: 2})
        self.assertNotEqual(chosen[:3], [B, B, B])

    def test_the_least_busy(self):
        least = LeastBusy()
        self.assertEqual([least.choose([A, B]) for _ in range(4)], [A, B, A, A])
        least.done(B)
        self.assertEqual(least.choose([A, B]), B)
        with self.assertRaises(ValueError):
            least.done(Instance("web", "c:1"))
        for balancer in (RoundRobin(), LeastBusy()):
            with self.assertRaises(ValueError):
                balancer.choose([])
