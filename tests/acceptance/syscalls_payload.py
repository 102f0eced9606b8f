"""Small programs whose system calls are known: they are what the engine is tried on."""

from __future__ import annotations

ATOMIC = """
import json, os, sys
directory = sys.argv[1]
temporary = f"{directory}/state.json.{os.getpid()}"
with open(temporary, "w") as file:
    json.dump({"n": 1, "pad": "x" * 20000}, file)
    file.flush()
    if "nosync" not in sys.argv:
        os.fsync(file.fileno())
os.replace(temporary, f"{directory}/state.json")
with open(f"{directory}/log.jsonl", "a") as file:
    file.write('{"op": 1}\\n')
"""

IN_PLACE = """
import json, sys
with open(f"{sys.argv[1]}/state.json", "w") as file:
    json.dump({"n": 1, "pad": "x" * 20000}, file)
"""

ONE_WRITE = """
import sys
with open(f"{sys.argv[1]}/state.json", "w") as file:
    file.write('{"n": 1, "pad": "' + "x" * 4000 + '"}')
"""

SLOW = """
import os, sys, time
for name in ("slow", "fast"):
    descriptor = os.open(f"{sys.argv[1]}/{name}", os.O_CREAT | os.O_WRONLY)
    started = time.monotonic()
    for _ in range(5):
        os.write(descriptor, b"x")
    print(time.monotonic() - started)
"""

ADD_ONE = """
import fcntl, json, os, sys
path = sys.argv[1]
if "flock" in sys.argv:
    lock = open(path + ".lock", "a")
    fcntl.flock(lock, fcntl.LOCK_EX)
if "lockf" in sys.argv:
    lock = open(path + ".lock", "a")
    fcntl.lockf(lock, fcntl.LOCK_EX)
with open(path) as file:
    state = json.load(file)
state["n"] += 1
temporary = f"{path}.{os.getpid()}"
with open(temporary, "w") as file:
    json.dump(state, file)
os.replace(temporary, path)
"""

TWO_LOCKS = """
import fcntl, sys
first, second = (open(path, "a") for path in sys.argv[1:3])
fcntl.flock(first, fcntl.LOCK_EX)
fcntl.flock(second, fcntl.LOCK_EX)
"""

BLIND = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(425, 8, ctypes.create_string_buffer(120))
print(ctypes.get_errno())
with open(f"{sys.argv[1]}/mapped", "w+b") as file:
    file.truncate(4096)
    mmap.mmap(file.fileno(), 4096)[:5] = b"hello"
"""

DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
os.closerange(0, 3)
number = 0
while not os.path.exists(f"{sys.argv[1]}/stop"):
    number += 1
    descriptor = os.open(f"{sys.argv[1]}/beat.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, str(number).encode())
    os.close(descriptor)
    os.rename(f"{sys.argv[1]}/beat.new", f"{sys.argv[1]}/beat")
    time.sleep(0.005)
"""

NODE_ATOMIC = """
const fs = require("fs");
fs.writeFileSync(process.argv[2] + "/state.new", '{"n": 1}');
fs.renameSync(process.argv[2] + "/state.new", process.argv[2] + "/state.json");
"""

C_ATOMIC = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  char from[4096], to[4096];
  snprintf(from, sizeof from, "%s/state.new", words[1]);
  snprintf(to, sizeof to, "%s/state.json", words[1]);
  int file = open(from, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (write(file, "{\"n\": 1}", 8) != 8) return 1;
  close(file);
  return rename(from, to) != 0;
}
"""

C_ADD_ONE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>
int main(int count, char **words) {
  char lock[4096], temporary[4096];
  int n;
  snprintf(lock, sizeof lock, "%s.lock", words[1]);
  snprintf(temporary, sizeof temporary, "%s.%d", words[1], getpid());
  if (count > 2) flock(open(lock, O_CREAT | O_WRONLY, 0644), LOCK_EX);
  FILE *state = fopen(words[1], "r");
  if (!state || fscanf(state, "{\"n\": %d}", &n) != 1) return 1;
  fclose(state);
  state = fopen(temporary, "w");
  fprintf(state, "{\"n\": %d}", n + 1);
  fclose(state);
  return rename(temporary, words[1]) != 0;
}
"""
