#!/bin/sh
# Set-up on a fresh Debian or Ubuntu machine: system packages where we may, then a virtual environment.
# Whatever cannot be installed is named, with what will be skipped because of it; set-up then goes on.
set -eu
venv=$1
python=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$*"; }

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
else
  as_root="no"
fi

# command, package, what is lost without it
needs="tmux|tmux|every run: longboat and most targets keep their agents in tmux
git|git|every run: the work of agents is followed through git
bwrap|bubblewrap|the strongest box; weaker isolation (unshare, cgroup, subreaper) is used instead
unshare|util-linux|the second strongest box"

missing=""
old_ifs=$IFS
IFS='
'
for line in $needs; do
  command=${line%%|*}
  package=$(printf '%s' "$line" | cut -d'|' -f2)
  command -v "$command" >/dev/null 2>&1 || missing="$missing $package"
done
IFS=$old_ifs
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  missing="$missing python3-venv"
fi

if [ -n "$missing" ]; then
  if [ "$as_root" != no ] && command -v apt-get >/dev/null 2>&1; then
    say "installing system packages:$missing"
    # shellcheck disable=SC2086  # the list of packages and the prefix are words on purpose
    { $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq $missing; } \
      >/dev/null || say "the system packages could not be installed"
  fi
fi

IFS='
'
for line in $needs; do
  command=${line%%|*}
  package=$(printf '%s' "$line" | cut -d'|' -f2)
  lost=${line##*|}
  command -v "$command" >/dev/null 2>&1 || say "missing: $package (install it by hand). Skipped without it: $lost"
done
IFS=$old_ifs

if [ ! -x "$venv/bin/python" ]; then
  say "making the virtual environment $venv"
  "$python" -m venv "$venv"
fi
say "installing mutiny and its tools"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
say "done: $venv/bin/mutiny, $venv/bin/longboat"
