"""While a breaker is half open, one call tries and all others are spared."""

import unittest

from fleet.breaker import Breaker, Open


class HalfOpen(unittest.TestCase):
    def test_one_call_tries(self):
        now = [0.0]
        breaker = Breaker(lambda: now[0], limit=1, rest_s=1)
        with self.assertRaises(ZeroDivisionError):
            breaker.call(lambda: 1 // 0)
        now[0] = 1.0

        def within():
            with self.assertRaises(Open):
                breaker.call(lambda: "second")
            return "first"

        self.assertEqual(breaker.call(within), "first")
