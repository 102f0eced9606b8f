"""The log: whole records, committed transactions, crashes."""

import unittest

from tinybase.transactions import Transactions
from tinybase.wal import Log, decode, encode


class Wal(unittest.TestCase):
    def test_nothing_behind_a_torn_record_counts(self):
        good = encode({"kind": "commit", "id": 1})
        self.assertEqual(len(list(decode(good + good[:-3]))), 1)
        self.assertEqual(len(list(decode(b"00000000" + good[8:] + good))), 0)

    def test_only_the_committed_counts(self):
        log = Log()
        work = Transactions(log)
        one, two = work.begin(), work.begin()
        one.note("t", 1, {"id": 1})
        two.note("t", 2, {"id": 2})
        work.commit(two)
        self.assertEqual([change["key"] for change in Log(log.crash()).committed()], [2])
        with self.assertRaises(ValueError):
            two.note("t", 3, None)
