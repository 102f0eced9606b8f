"""The parser."""

import unittest

from tinybase.sql import Create, Delete, Insert, Select, SqlError, parse

GOOD = {
    "create table t (id int, name text);": Create("t", (("id", "int"), ("name", "text"))),
    "INSERT INTO t VALUES (-1, 'it''s', NULL)": Insert("t", (-1, "it's", None)),
    "select * from t": Select("t", ("*",)),
    "select id, name from t where id >= 3": Select("t", ("id", "name"), ("id", ">=", 3)),
    "delete from t where name = 'x'": Delete("t", ("name", "=", "x")),
}


class Sql(unittest.TestCase):
    def test_statements(self):
        for text, statement in GOOD.items():
            self.assertEqual(parse(text), statement)

    def test_mistakes(self):
        for text in (
            "",
            "drop table t",
            "select from",
            "select * from t where a ~ 1",
            "select * from t x",
        ):
            with self.assertRaises(SqlError, msg=text):
                parse(text)
        with self.assertRaises(SqlError):
            parse("insert into t values (abc)")
