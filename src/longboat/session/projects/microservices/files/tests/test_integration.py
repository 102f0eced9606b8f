"""The gateway with registry, balancer, breakers and tracing."""

import unittest

from fleet.gateway import Gateway, Unavailable
from fleet.instances import Instance
from fleet.registry import Registry
from fleet.settings import Settings


class Together(unittest.TestCase):
    def setUp(self):
        self.now, self.down = 0.0, set()
        self.registry = Registry(lambda: self.now)
        for host in ("a", "b"):
            self.registry.register(Instance("web", f"{host}:1"))
        settings = Settings({"failures": "1", "rest_s": "10"})
        self.gateway = Gateway(self.registry, settings, lambda: self.now, self.send)

    def send(self, instance, body, header):
        if instance.address in self.down:
            raise OSError("down")
        return f"{instance.address} {body} {header}"

    def test_requests_go_round(self):
        said = {self.gateway.request("web", "x").split()[0] for _ in range(4)}
        self.assertEqual(said, {"a:1", "b:1"})

    def test_another_one_answers(self):
        self.down.add("a:1")
        for _ in range(3):
            self.assertTrue(self.gateway.request("web", "x").startswith("b:1"))
        self.down.add("b:1")
        with self.assertRaises(Unavailable):
            self.gateway.request("web", "x")
        with self.assertRaises(Unavailable):
            self.gateway.request("mail", "x")
        self.down.clear()
        self.now = 11.0
        self.assertIn("x", self.gateway.request("web", "x", "00000001-00000002"))
        self.assertEqual(self.gateway.tracer.finished[-1].parent, 2)
