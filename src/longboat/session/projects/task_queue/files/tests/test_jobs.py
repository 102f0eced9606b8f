"""Jobs: priorities and waits."""

import unittest

from redqueue.jobs import Job, backoff_s


class Jobs(unittest.TestCase):
    def test_bad_priorities_are_refused(self):
        with self.assertRaises(ValueError):
            Job(1, "x", 256)

    def test_backoff_has_an_end(self):
        self.assertEqual([backoff_s(n) for n in (0, 1, 2, 3, 20)], [1.0, 1.0, 2.0, 4.0, 60.0])

    def test_a_job_is_exhausted_after_its_attempts(self):
        job = Job(1, "x", max_attempts=2)
        self.assertFalse(job.failed(0.0).exhausted)
        self.assertTrue(job.failed(0.0).failed(1.0).exhausted)
