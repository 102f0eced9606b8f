"""Choice of a technique, the command lines it builds, and the layout of a box."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutiny.box import isolation, layout, mounts, probes
from mutiny.box.errors import SurvivorsLeft, TechniqueUnavailable
from mutiny.box.isolation import (
    TECHNIQUES,
    Bubblewrap,
    Running,
    Subreaper,
    Unshare,
    Walls,
    choose,
)
from mutiny.box.mounts import is_below, mount_arguments
from mutiny.kit.domains import ROOTS
from mutiny.system import procfs


@pytest.fixture
def fresh_probes() -> Iterator[None]:
    isolation.why_not.cache_clear()
    yield
    isolation.why_not.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, reasons: dict[str, str | None]) -> None:
    for technique in TECHNIQUES:
        reason = reasons[technique.name]
        monkeypatch.setattr(type(technique), "probe", lambda self, reason=reason: reason)


@pytest.mark.usefixtures("fresh_probes")
def test_the_strongest_available_technique_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"bwrap": "no", "unshare": "no", "cgroup": None, "subreaper": None}
    pretend(monkeypatch, reasons)
    assert choose(None).name == "cgroup"
    assert choose("subreaper").name == "subreaper"


@pytest.mark.usefixtures("fresh_probes")
def test_a_forced_technique_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"bwrap": "not installed", "unshare": None, "cgroup": None, "subreaper": None}
    pretend(monkeypatch, reasons)
    with pytest.raises(TechniqueUnavailable, match=r"'bwrap' was asked for.*not installed"):
        choose("bwrap")
    with pytest.raises(TechniqueUnavailable, match="known: bwrap, unshare, cgroup, subreaper"):
        choose("docker")


@pytest.mark.usefixtures("fresh_probes")
def test_no_technique_at_all_names_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"bwrap": "a", "unshare": "b", "cgroup": "c", "subreaper": "d"})
    with pytest.raises(TechniqueUnavailable, match="bwrap: a; unshare: b; cgroup: c; subreaper: d"):
        choose(None)


def test_every_technique_says_what_it_guarantees() -> None:
    assert [each.name for each in TECHNIQUES] == ["bwrap", "unshare", "cgroup", "subreaper"]
    for technique in TECHNIQUES:
        assert technique.guarantee.endswith(".")


def pairs(arguments: list[str], option: str) -> list[tuple[str, str]]:
    places = [index for index, argument in enumerate(arguments) if argument == option]
    return [(arguments[index + 1], arguments[index + 2]) for index in places]


def test_only_the_box_and_its_temporary_directory_are_bound_writable(tmp_path: Path) -> None:
    arguments = mount_arguments(tmp_path / "box")
    assert set(pairs(arguments, "--bind")) == {
        (f"{tmp_path}/box", "/box"),
        (f"{tmp_path}/box/tmp", "/tmp"),
        (f"{tmp_path}/box/tmp", "/var/tmp"),
    }
    assert "--dev-bind" not in arguments
    assert arguments[-2:] == ["--remount-ro", "/"]
    shown = [source for source, _ in pairs(arguments, "--ro-bind")]
    assert "/usr" in shown
    for hidden in ("/tmp", "/run", "/proc", "/dev"):
        assert hidden not in shown


def test_top_level_links_stay_links() -> None:
    arguments = mount_arguments(Path("/tmp/box"))
    links = {
        str(entry): str(entry.readlink()) for entry in Path("/").iterdir() if entry.is_symlink()
    }
    found = {place: target for target, place in pairs(arguments, "--symlink")}
    assert found == links


def test_needed_paths_below_a_hidden_one_come_back_read_only(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    arguments = mount_arguments(tmp_path / "x" / "box", read_only=[programs])
    mounted = pairs(arguments, "--ro-bind")
    assert (str(programs), str(programs)) in mounted
    # The later mount wins, so that it must come after the directory that hides it.
    assert arguments.index(str(programs)) > arguments.index("/tmp")


def test_homes_are_hidden_and_what_is_needed_in_them_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(sys.base_prefix).parent  # a place below which something is needed
    monkeypatch.setenv("HOME", str(home))
    arguments = mount_arguments(tmp_path / "box")
    hidden = [arguments[at + 1] for at, word in enumerate(arguments) if word == "--tmpfs"]
    assert any(is_below(home, Path(place)) for place in hidden)
    for place in hidden:
        assert [one for one in hidden if is_below(Path(place), Path(one))] == [place]
    back = [source for source, _ in pairs(arguments, "--ro-bind")]
    assert any(is_below(Path(sys.base_prefix), Path(place)) for place in back if place != "/root")


@pytest.mark.parametrize("home", ["", "/", "relative", "/no/such/home"])
def test_a_strange_home_hides_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    arguments = mount_arguments(tmp_path / "box")
    hidden = {arguments[at + 1] for at, word in enumerate(arguments) if word == "--tmpfs"}
    assert hidden <= {"/run", "/home", "/root"}


def test_the_parent_of_the_box_is_hidden_and_mutiny_stays_visible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mounts, "_homes", list)
    project = Path(__file__).resolve().parents[2]
    if is_below(project, Path("/tmp")):
        pytest.skip("the project lies in a directory that is hidden anyway")
    arguments = mount_arguments(project / "box")
    assert arguments[arguments.index("--tmpfs", arguments.index("/run") + 1) + 1] == str(project)
    assert (f"{project}/src", f"{project}/src") in pairs(arguments, "--ro-bind")
    # Made read-only only after everything needed has found its place in it.
    sealed = [at for at, word in enumerate(arguments) if word == "--remount-ro"]
    assert [arguments[at + 1] for at in sealed] == [str(project), "/"]
    assert sealed[0] > arguments.index(f"{project}/src")


def test_a_survivor_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not end after the kill: here because nothing is sent."""
    monkeypatch.setattr(isolation, "_send_kill", lambda handle: None)
    with subprocess.Popen(["sleep", "60"]) as child:
        handle = os.pidfd_open(child.pid)
        try:
            for running in (
                Running("id", child.pid, handle),
                Running("id", child.pid, handle, child.pid, handle),
            ):
                with pytest.raises(SurvivorsLeft, match=rf"host pid {child.pid}"):
                    Bubblewrap().kill(running, 0.01)
        finally:
            child.kill()
            os.close(handle)


def test_a_survivor_with_the_tag_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "kill_by_handle", lambda pid, belongs: False)
    box_id = f"unit-{os.getpid()}"
    with (
        subprocess.Popen(
            ["cat"],
            env={"MUTINY_BOX": box_id},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as stray,
        subprocess.Popen(["sleep", "60"]) as agent,
    ):
        handle = os.pidfd_open(agent.pid)
        try:
            # `Popen` is done a moment before the kernel shows the environment of the new program;
            # one that answers has it.
            assert stray.stdin is not None
            assert stray.stdout is not None
            stray.stdin.write(b"x")
            assert stray.stdout.read(1) == b"x"
            with pytest.raises(SurvivorsLeft, match=rf"still alive: pids \[{stray.pid}\]"):
                Subreaper().kill(Running(box_id, agent.pid, handle), 0.01)
        finally:
            stray.kill()
            os.close(handle)


def test_network_is_cut_off_unless_asked_for(tmp_path: Path) -> None:
    cut = Walls("id", tmp_path)
    joined = Walls("id", tmp_path, network="host")
    assert "--unshare-net" in Bubblewrap().argv(cut, ["x"])
    assert "--unshare-net" not in Bubblewrap().argv(joined, ["x"])
    assert "--net" in Unshare().argv(cut, ["x"])
    assert "--net" not in Unshare().argv(joined, ["x"])


def test_the_environment_is_built_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the user")
    monkeypatch.setenv("TMUX", "of the user")
    made = layout.box_environment("id", "/box", {"EXTRA": "1", "EDITOR": "vi"})
    assert "SECRET" not in made
    assert "TMUX" not in made
    assert made["EXTRA"] == "1"
    assert made["EDITOR"] == "vi"
    assert made["PATH"].startswith("/box/bin:")
    assert made["GIT_CONFIG_NOSYSTEM"] == "1"


def test_the_layout_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("mine")
    layout.make_layout(tmp_path, "/box")
    assert (tmp_path / "home" / ".gitconfig").read_text() == "mine"
    assert (tmp_path / "home" / ".profile").read_text() == 'export PATH=/box/bin:"$PATH"\n'
    assert layout.needs_first_commit(tmp_path)
    (tmp_path / "source" / ".gitignore").unlink()
    (tmp_path / "source" / ".git").mkdir()
    layout.make_layout(tmp_path, "/box")
    assert not (tmp_path / "source" / ".gitignore").exists()


def test_probes_answer_and_never_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {probe.name: probe for probe in probes.probe_all()}
    assert {"bwrap", "seccomp_notify", "netem", "git", "tmux", "docker"} <= found.keys()
    assert all(probe.detail and probe.what_for for probe in found.values())
    assert found["pidfd"].available
    monkeypatch.setenv("PATH", os.devnull)
    bare = {probe.name: probe for probe in probes.probe_all()}
    assert not bare["git"].available
    assert "not installed" in bare["git"].detail


def test_a_probe_that_breaks_is_an_answer() -> None:
    def broken() -> str:
        raise RuntimeError("surprise")

    answer = probes._probe("x", broken, "nothing")
    assert not answer.available
    assert answer.detail == "the probe itself failed: RuntimeError: surprise"


@pytest.mark.parametrize("root", ["box", *ROOTS])
def test_a_login_shell_finds_the_doubles_whatever_the_directory_is_called(
    tmp_path: Path, root: str
) -> None:
    layout.make_layout(tmp_path, f"/boxes/{root}", source=False)
    shell = ["sh", "-c", '. "$1"; printf %s "$PATH"', "sh", str(tmp_path / "home" / ".profile")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/somewhere"}
    said = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == f"/boxes/{root}/bin:/usr/bin:/bin"
