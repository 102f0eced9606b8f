"""Breaker, tracing and settings."""

import unittest

from fleet.breaker import Breaker, Open
from fleet.settings import Settings
from fleet.tracing import Tracer, parse_header


def fail():
    raise OSError("down")


class Parts(unittest.TestCase):
    def test_the_breaker_opens_and_closes(self):
        now = [0.0]
        breaker = Breaker(lambda: now[0], limit=2, rest_s=5)
        for _ in range(2):
            with self.assertRaises(OSError):
                breaker.call(fail)
        with self.assertRaises(Open):
            breaker.call(lambda: "never")
        now[0] = 5.0
        self.assertEqual(breaker.state, "half-open")
        self.assertEqual(breaker.call(lambda: "well"), "well")
        self.assertEqual(breaker.state, "closed")

    def test_spans_belong_together(self):
        tracer = Tracer(lambda: 1.0)
        with tracer.span("outer") as outer, tracer.span("inner", outer.header()) as inner:
            pass
        self.assertEqual((inner.trace, inner.parent), (outer.trace, outer.id))
        with self.assertRaises(OSError), tracer.span("bad"):
            fail()
        self.assertEqual(tracer.finished[-1].tags, {"error": "OSError"})
        self.assertEqual([parse_header(text) for text in ("", "x-y", "1-2")], [None, None, (1, 2)])

    def test_layers_of_settings(self):
        heard = []
        settings = Settings({"failures": "3"})
        settings.watch("failures", heard.append)
        settings.set("failures", "5", "environment")
        settings.set("failures", "7")
        settings.set("failures", "6", "environment")
        self.assertEqual((settings.number("failures"), heard), (7.0, ["5", "7"]))
        settings.set("name", "x")
        with self.assertRaises(ValueError):
            settings.number("name")
        with self.assertRaises(KeyError):
            settings.get("nothing")
