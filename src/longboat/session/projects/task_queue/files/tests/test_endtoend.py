"""A worker dies, its job comes back, and the dashboard shows what is dead."""

import unittest

from redqueue.broker import Broker
from redqueue.web import page


class EndToEnd(unittest.TestCase):
    def test_jobs_of_the_gone_are_everybodys(self):
        broker = Broker(lambda: 0.0)
        broker.put("<script>")
        self.assertEqual(broker.take("gone").payload, "<script>")
        self.assertEqual(broker.release("gone"), 1)
        job = broker.take("other")
        broker.dead.append(job)
        self.assertIn("&lt;script&gt;", page(broker))
