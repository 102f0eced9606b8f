#!/bin/sh
# `make run`: the point of Mutiny on one screen. A healthy orchestrator passes; a planted bug is found, shrunk and reported.
set -eu
bin=$1

"$bin/mutiny" run --seed 1 --scenario basic_lifecycle --scenario rejection_cycle --scenario merge_conflict \
  --scenario daemon_crash --scenario tmux_crash --scenario multi_worker_chaos --scenario invalid_operations

printf '\nThe same orchestrator with a bug: it throws finished work away.\n\n'
code=0
"$bin/mutiny" run --seed 1 --plant nuke-loses-commits --scenario nuke_finished_work --brief --minimise-seconds 30 || code=$?
if [ "$code" != 1 ]; then
  echo "make run: expected exit code 1 (bug found), got $code" >&2
  exit 1
fi
printf '\nShortest sequence that breaks it (chaos_runs/latest/minimal_replay.json):\n'
sed -n '/^Reset()/,/Error occurs here/p' chaos_runs/latest/error_report.md
