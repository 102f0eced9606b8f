"""Profiles of the target's own code: what its language needs in the environment to write them in the box.

A process that is killed writes none, so what only such a process has run is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = ("python", "go", "llvm")
FOLDER = "profile"
"""In the box, and later in the run directory."""
_RC = "[run]\nparallel = True\ndata_file = {place}/data\nomit = {place}/hook/*\n"
_HOOK = """\
# Mutiny: a Python that has the package coverage measures itself.
try:
    import coverage
except ImportError:
    pass
else:
    coverage.process_startup()
"""


def profile_environment(language: str, box: str, given: Mapping[str, str]) -> dict[str, str]:
    """The variables that let programs of a language write their profile; `given`: what else is set."""
    place = f"{box}/{FOLDER}"
    if language == "go":
        return {"GOCOVERDIR": place}
    if language == "llvm":
        return {"LLVM_PROFILE_FILE": f"{place}/%p-%m.profraw"}
    others = given.get("PYTHONPATH")
    path = f"{place}/hook:{others}" if others else f"{place}/hook"
    return {"COVERAGE_PROCESS_START": f"{place}/coveragerc", "PYTHONPATH": path}


def profile_files(language: str, box: str) -> dict[str, str]:
    """What must lie in the box for it: path and content. The folder has to be there in any case."""
    place = f"{box}/{FOLDER}"
    if language != "python":
        return {f"{place}/.profile": f"{language}\n"}
    return {
        f"{place}/.profile": "python\n",
        f"{place}/coveragerc": _RC.format(place=place),
        f"{place}/hook/sitecustomize.py": _HOOK,
    }
