#!/bin/sh
# Compile everything, then run all tests.
set -e
python3 -m compileall -q fleet tests
python3 -m unittest discover -s tests -t .
