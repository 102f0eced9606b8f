"""Discovery: leases and watchers."""

import unittest

from fleet.instances import Instance
from fleet.registry import Registry, UnknownService


class Discovery(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.registry = Registry(lambda: self.now)
        self.a, self.b = Instance("web", "a:1"), Instance("web", "b:1")

    def test_who_does_not_renew_is_forgotten(self):
        self.registry.register(self.b)
        self.registry.register(self.a)
        self.now = 20.0
        self.registry.register(self.a)
        self.assertEqual(self.registry.find("web"), [self.a, self.b])
        self.now = 40.0
        self.assertEqual(self.registry.find("web"), [self.a])
        self.now = 80.0
        with self.assertRaises(UnknownService):
            self.registry.find("web")

    def test_watchers_hear_of_changes_only(self):
        heard = []
        self.registry.watch(heard.append)
        self.registry.register(self.a)
        self.registry.register(self.a)
        self.assertTrue(self.registry.leave(self.a))
        self.assertFalse(self.registry.leave(self.a))
        self.assertEqual(heard, ["web", "web"])
