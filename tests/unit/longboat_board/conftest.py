"""A bench for each of the three boards."""

from board_bench import bench, make_bench

__all__ = ["bench", "make_bench"]
