#!/bin/sh
# Where a broker is started from; the address comes from the environment.
exec python3 -m redqueue.cli "$@"
