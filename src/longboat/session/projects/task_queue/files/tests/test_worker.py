"""Workers and heartbeats."""

import unittest

from redqueue.broker import Broker
from redqueue.worker import Heartbeats, Worker


class Workers(unittest.TestCase):
    def test_good_jobs_are_done_and_bad_ones_fail(self):
        broker = Broker(lambda: 0.0)
        done = []

        def do(payload):
            if payload == "bad":
                raise RuntimeError(payload)
            done.append(payload)

        for payload in ("one", "bad", "two"):
            broker.put(payload)
        self.assertEqual(Worker("w", broker, do).drain(), 3)
        self.assertEqual(done, ["one", "two"])
        self.assertEqual(broker.stats()["later"], 1)

    def test_the_silent_are_told_once(self):
        beats = Heartbeats(10)
        beats.beat("a", 0.0)
        beats.beat("b", 5.0)
        self.assertEqual(beats.silent(11.0), ["a"])
        self.assertEqual(beats.silent(11.0), [])
