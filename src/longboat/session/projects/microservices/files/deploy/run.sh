#!/bin/sh
# One gateway a host; its settings come from the environment.
exec python3 -c "import fleet.gateway"
