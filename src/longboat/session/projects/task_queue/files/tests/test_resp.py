"""RESP: what is encoded can be decoded, in any pieces."""

import unittest

from redqueue.resp import Incomplete, ProtocolError, decode, encode, encode_error

VALUES = [0, -7, "", "hello", "käse\r\n", None, [], ["PUT", 1, None, ["x"]]]


class Resp(unittest.TestCase):
    def test_every_value_comes_back(self):
        for value in VALUES:
            data = encode(value)
            self.assertEqual(decode(data), (value, len(data)))

    def test_a_piece_is_incomplete(self):
        data = encode(["PUT", "payload", 5])
        for end in range(len(data)):
            with self.assertRaises(Incomplete):
                decode(data[:end])

    def test_nonsense_is_refused(self):
        for data in (b"?1\r\n", b":x\r\n", b"$3\r\nabcde"):
            with self.assertRaises(ProtocolError):
                decode(data)

    def test_an_error_is_one_line(self):
        self.assertEqual(encode_error("a\r\nb"), b"-ERR a b\r\n")
        self.assertEqual(decode(b"-ERR a b\r\n")[0], "ERR a b")
