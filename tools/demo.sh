#!/bin/sh
# `make run`: the main job. All scenarios on longboat must pass; then a planted bug must be found, up to its report.
set -eu
bin=$1

"$bin/mutiny" run --all-scenarios --seed 1

echo
echo "Now the same with a bug planted into longboat: it must be found, shrunk and reported."
echo
code=0
"$bin/mutiny" run --plant "${PLANT:-sha-dropped-on-daemon-death}" --scenario "${SCENARIO:-review_survives_daemon}" --seed 1 || code=$?
if [ "$code" != 1 ]; then
  echo "make run: expected exit code 1 (bug found), got $code" >&2
  exit 1
fi
echo
sed -n '1,16p' chaos_runs/latest/error_report.md
echo "..."
sed -n '/^## Minimal Replay/,$p' chaos_runs/latest/error_report.md
