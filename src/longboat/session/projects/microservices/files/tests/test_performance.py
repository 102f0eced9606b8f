"""Memory does not grow with the number of requests: counted, not timed."""

import unittest

from fleet.tracing import Tracer


class Bounded(unittest.TestCase):
    def test_only_the_last_spans_are_kept(self):
        tracer = Tracer(lambda: 0.0, limit=50)
        for number in range(500):
            with tracer.span(str(number)):
                pass
        self.assertEqual(len(tracer.finished), 50)
        self.assertEqual(tracer.finished[0].name, "450")
