"""The broker: order, delay, retry, dead letters."""

import unittest

from redqueue.broker import Broker, UnknownJob


class Queue(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.broker = Broker(lambda: self.now)

    def test_urgent_first_then_old_first(self):
        for payload, priority in (("b", 5), ("a", 1), ("c", 5)):
            self.broker.put(payload, priority)
        taken = [self.broker.take("w").payload for _ in range(3)]
        self.assertEqual(taken, ["a", "b", "c"])
        self.assertIsNone(self.broker.take("w"))

    def test_a_delayed_job_waits(self):
        self.broker.put("later", delay_s=10)
        self.assertIsNone(self.broker.take("w"))
        self.now = 10.0
        self.assertEqual(self.broker.take("w").payload, "later")

    def test_failures_back_off_and_end_among_the_dead(self):
        number = self.broker.put("bad")
        for attempt, wait_s in ((1, 1.0), (2, 2.0)):
            self.broker.take("w")
            self.assertTrue(self.broker.fail(number), attempt)
            self.assertIsNone(self.broker.take("w"))
            self.now += wait_s
        self.broker.take("w")
        self.assertFalse(self.broker.fail(number))
        self.assertEqual(self.broker.stats()["dead"], 1)

    def test_unknown_jobs_are_refused(self):
        with self.assertRaises(UnknownJob):
            self.broker.finish(99)
