"""Schemas: rows fit or are refused."""

import unittest

from tinybase.rows import Schema, SchemaError


class Rows(unittest.TestCase):
    def setUp(self):
        self.schema = Schema("people", (("id", "int"), ("name", "text")))

    def test_a_row_is_completed(self):
        self.assertEqual(self.schema.check({"id": 1}), {"id": 1, "name": None})

    def test_bad_rows_are_refused(self):
        for row in ({"id": "x"}, {"name": "Ada"}, {"id": 1, "age": 3}):
            with self.assertRaises(SchemaError):
                self.schema.check(row)
