"""The greeting greets."""

import unittest

from hello.greeting import greet


class Greeting(unittest.TestCase):
    """What is said to whom."""

    def test_by_name(self) -> None:
        """Spaces do not matter."""
        self.assertEqual(greet(" Ada "), "Hello, Ada!")
