"""Client, server, broker and dashboard together."""

import unittest

from redqueue.broker import Broker
from redqueue.cli import main
from redqueue.resp import encode
from redqueue.server import Connection


class Together(unittest.TestCase):
    def setUp(self):
        self.broker = Broker(lambda: 0.0)
        self.connection = Connection(self.broker, "client")

    def test_a_job_from_put_to_done(self):
        self.assertEqual(main(["PUT", "<hello>", "3"], self.connection.feed), "1")
        self.assertEqual(main(["TAKE"], self.connection.feed), "1\n<hello>")
        self.assertEqual(main(["DONE", "1"], self.connection.feed), "OK")
        self.assertIn("done\n1", main(["STATS"], self.connection.feed))
        self.assertEqual(main(["TAKE"], self.connection.feed), "(nothing)")
        self.assertIn("usage", main([], self.connection.feed))

    def test_commands_in_pieces_and_in_a_row(self):
        data = encode(["PUT", "a"]) + encode(["PUT", "b"])
        said = b"".join(self.connection.feed(data[i : i + 1]) for i in range(len(data)))
        self.assertEqual(said, b":1\r\n:2\r\n")

    def test_mistakes_are_answered(self):
        for words in (["DONE", "9"], ["PUT"], ["FLY"], ["PUT", "x", "999"]):
            self.assertTrue(self.connection.feed(encode(words)).startswith(b"-ERR"), words)
        self.assertTrue(self.connection.feed(b"!x\r\n").startswith(b"-ERR"))
        self.assertTrue(self.connection.feed(encode(5)).startswith(b"-ERR"))
