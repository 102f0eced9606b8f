"""Engine, planner and protocol together."""

import json
import unittest

from tinybase.engine import Database
from tinybase.rows import SchemaError
from tinybase.wire import answer


class Together(unittest.TestCase):
    def setUp(self):
        self.base = Database()
        self.base.run("create table t (id int, name text)")
        self.base.run(*(f"insert into t values ({n}, 'n{n}')" for n in range(10)))

    def ask(self, text):
        return self.base.run(text)[0]

    def test_questions(self):
        self.assertEqual(self.ask("select name from t where id = 3"), [{"name": "n3"}])
        self.assertEqual(len(self.ask("select * from t where id < 4")), 4)
        self.assertEqual(len(self.ask("select * from t where id >= 4")), 6)
        self.assertEqual(self.ask("select id from t where name = 'n7'"), [{"id": 7}])
        self.assertEqual(self.ask("select id from t where id = 99"), [])

    def test_all_or_nothing(self):
        with self.assertRaises(SchemaError):
            self.base.run("insert into t values (100, 'x')", "insert into t values (1, 'again')")
        self.assertEqual(self.ask("select id from t where id = 100"), [])

    def test_mistakes(self):
        for text in (
            "select x from t",
            "select * from u",
            "insert into t values (1)",
            "create table t (a int)",
            "select * from t where x = 1",
        ):
            with self.assertRaises(SchemaError, msg=text):
                self.base.run(text)

    def test_the_protocol(self):
        said = json.loads(answer(self.base, b'{"sql": ["select id from t where id = 1"]}'))
        self.assertEqual(said, {"ok": True, "rows": [[{"id": 1}]]})
        for line in (b"x", b"{}", b'{"sql": "select"}', b'{"sql": ["select"]}'):
            self.assertFalse(json.loads(answer(self.base, line))["ok"])
