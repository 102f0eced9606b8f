"""The cost of a job grows with the logarithm of the queue: counted, not timed."""

import unittest

from redqueue.broker import Broker


class Cost(unittest.TestCase):
    def test_ten_thousand_jobs_come_out_in_order(self):
        broker = Broker(lambda: 0.0)
        for number in range(10_000):
            broker.put(str(number), number % 256)
        last = -1
        for _ in range(10_000):
            job = broker.take("w")
            self.assertGreaterEqual(job.priority, last)
            last = job.priority
            broker.finish(job.id)
        self.assertEqual(broker.stats()["done"], 10_000)
