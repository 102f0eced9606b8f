"""A server and one command to it, as one program: starts the server, gives the command, ends the server.

    board_once.py READY COUNT SERVER... COMMAND...

READY is a regular expression in the server's output (its group `endpoint` replaces `{endpoint}` in the
command), COUNT the number of the server's words. Its exit code and output are the command's. So a sweep
sees every system call of both, and a crash takes both.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

NEVER_READY = 4


def main(arguments: list[str]) -> int:
    """Run both."""
    pattern, count = re.compile(arguments[0]), int(arguments[1])
    server, command = arguments[2 : 2 + count], arguments[2 + count :]
    running = subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    endpoint = None
    said = []
    for line in running.stdout:
        said.append(line)
        match = pattern.search(line)
        if match is not None:
            endpoint = match.groupdict().get("endpoint") or ""
            break
    if endpoint is None:  # it could not even start, and has said why
        code = running.wait()
        sys.stderr.write("".join(said))
        return code if code > 0 else NEVER_READY
    done = subprocess.run([word.replace("{endpoint}", endpoint) for word in command], check=False)
    running.send_signal(signal.SIGTERM)
    if running.stdin is not None:
        running.stdin.close()
    running.stdout.read()
    running.wait()
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
