"""A crash in the middle: what was committed is there, the rest is not, and work goes on."""

import unittest

from tinybase.engine import Database


class Crash(unittest.TestCase):
    def test_committed_rows_survive_a_torn_log(self):
        base = Database()
        base.run("create table t (id int, name text)")
        base.run("insert into t values (1, 'one')")
        base.run("delete from t where id = 1", "insert into t values (2, 'two')")
        torn = base.log.crash() + b"deadbeef {"
        again = Database(torn)
        self.assertEqual(again.run("select id from t")[0], [{"id": 2}])
        again.run("insert into t values (3, NULL)")
        third = Database(again.log.crash())
        self.assertEqual(len(third.run("select * from t")[0]), 2)
        self.assertEqual(third.run("select id from t where name = NULL")[0], [{"id": 3}])
