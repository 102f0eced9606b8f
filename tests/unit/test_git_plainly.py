"""A repository's own settings change neither what git says to Mutiny nor what it starts for that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mutiny.probes import git

SETTINGS = {
    "color.ui": "always",
    "color.grep": "always",
    "color.status": "always",
    "grep.lineNumber": "true",
    "grep.column": "true",
    "grep.patternType": "fixed",
    "log.showSignature": "true",
    "diff.noprefix": "true",
    "diff.external": "touch started;",
    "diff.loud.textconv": "touch started;",
    "core.fsmonitor": "touch started;",
    "status.branch": "true",
    "status.short": "true",
}


def said(place: Path, argv: tuple[str, ...]) -> str:
    done = subprocess.run(argv, cwd=place, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make = """git init -q -b main .; echo MT-7-1 > file; echo '* diff=loud' > .gitattributes
    git add .; git -c user.name=a -c user.email=a@b commit -qm 'MT-7-2'; echo more >> file"""
    subprocess.run(["sh", "-ec", make], cwd=tmp_path, check=True, timeout=20)
    return tmp_path


def test_it_says_the_same_of_every_repository(repository: Path) -> None:
    asked = (
        git.STATUS_ARGV,
        git.CHECKOUT_ARGV,
        git.log_argv(".", added_lines=True),
        git.default_argv(".", "main"),
        git.tokens_argv(".", "main"),
        git.untold_argv(".", "main"),
    )
    before = [said(repository, argv) for argv in asked]
    for name, value in SETTINGS.items():
        subprocess.run(["git", "config", name, value], cwd=repository, check=True, timeout=20)
    assert [said(repository, argv) for argv in asked] == before
    assert not (repository / "started").exists()
    assert before[4] == "MT-7-1\n"
    (commit,) = git.parse_log(before[2], frozenset())
    assert commit.tokens == ("MT-7-2", "MT-7-1")
