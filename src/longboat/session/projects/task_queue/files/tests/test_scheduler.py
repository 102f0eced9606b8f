"""The scheduler: every so often, and never more than once a tick."""

import unittest

from redqueue.broker import Broker
from redqueue.scheduler import Scheduler


class Schedule(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(lambda: 0.0)
        self.scheduler = Scheduler(self.broker)

    def test_every_ten_seconds(self):
        self.scheduler.every("report", "make report", 10, 0.0)
        made = [self.scheduler.tick(now) for now in (5.0, 10.0, 15.0, 20.0)]
        self.assertEqual(made, [0, 1, 0, 1])

    def test_a_late_tick_makes_one_job(self):
        self.scheduler.every("report", "make report", 10, 0.0)
        self.assertEqual(self.scheduler.tick(95.0), 1)
        self.assertEqual(self.scheduler.tick(99.0), 0)
        self.assertEqual(self.scheduler.tick(100.0), 1)

    def test_cancel(self):
        self.scheduler.every("report", "x", 1, 0.0)
        self.assertTrue(self.scheduler.cancel("report"))
        self.assertFalse(self.scheduler.cancel("report"))
        with self.assertRaises(ValueError):
            self.scheduler.every("never", "x", 0, 0.0)
