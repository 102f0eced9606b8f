"""`mutiny target`: list, check and create targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.model.verdict import Verdict


@click.group("target")
def command() -> None:
    """List, check and create targets: a TOML file is enough to bring your own orchestrator."""


@command.command("list")
@json_option
def list_targets(as_json: bool) -> int:
    """List the targets that ship with Mutiny or with installed packages."""
    from mutiny.errors import TargetMissing
    from mutiny.targets.registry import find_program, find_spec, shipped

    rows = []
    for name in shipped():
        spec, origin = find_spec(name)
        try:
            program: str | None = str(find_program(spec, None))
        except TargetMissing:
            program = None
        rows.append(
            {
                "name": name,
                "contract": spec.contract,
                "about": spec.about,
                "program": program,
                "file": origin,
            }
        )
    if as_json:
        from mutiny.cli.envelope import tell

        tell("target list", 0, {"targets": rows})
        return 0
    for row in rows:
        echo(f"{row['name']:<12} {row['contract']:<9} {row['about']}")
        echo(f"{'':<12} {'':<9} program: {row['program'] or 'not found; say where with --bin'}")
    return 0


@command.command("check")
@click.argument("file", type=values.TARGET)
@click.option(
    "--bin",
    "program",
    metavar="PATH",
    help="Also try the program: init, up, status, down in a box.",
)
@click.option("--live", is_flag=True, help="Also try the program found on PATH.")
@json_option
def check_target(file: str, program: str | None, live: bool, as_json: bool) -> int:
    """Check a target file (or a target's name); every mistake is named with its line.

    With --bin or --live the target is also brought to life once: the first scenario of its contract
    must run to a verdict.
    """
    from mutiny.targets.registry import find_spec

    spec, origin = find_spec(file)
    missing = list(spec.missing)
    excused = dict(spec.profile.not_applicable)
    if not as_json:
        echo(f"{origin}: target {spec.name!r} is well-formed")
        if missing:
            echo(f"not applicable for it (no command given): {', '.join(missing)}")
        for rule, reason in excused.items():
            echo(f"not applicable: {rule}: {reason}")
    verdict = _try(file, program, quiet=as_json) if program is not None or live else None
    code = 0 if verdict is None else verdict.exit_code
    if as_json:
        from mutiny.cli.envelope import tell

        own = {
            "file": origin,
            "contract": spec.contract,
            "missing_commands": missing,
            "not_applicable": excused,
        }
        tell("target check", code, own, verdict=verdict and verdict.value, target=spec.name)
    return code


def _try(file: str, program: str | None, *, quiet: bool) -> Verdict:
    """Bring the target to life once."""
    from mutiny.cli.options import DEFAULT_ROOT, make_bench
    from mutiny.cli.show import Show
    from mutiny.modes.bench import Assignment
    from mutiny.modes.scenarios import run_one

    bench = make_bench(file, program, "", "double", None, DEFAULT_ROOT, None)
    title, operations = next(iter(bench.target.contract().scenarios.items()))
    return run_one(bench, Assignment(operations, title), Show(quiet=quiet), "Check").verdict


def _proposed(program: str, contract: str | None, file: Path) -> str:
    """A file for a program that was tried once."""
    from tempfile import TemporaryDirectory

    from mutiny.contracts.catalogue import contract_named, default_for, with_targets
    from mutiny.errors import UsageError, nearest
    from mutiny.targets.discover.program import Discovery
    from mutiny.targets.discover.proposal import hints_of, proposed
    from mutiny.targets.registry import program_at

    name = contract or default_for("run").name
    if name not in with_targets():
        raise UsageError(f"unknown contract {name!r}{nearest(name, list(with_targets()))}")
    form = contract_named(name).target_form
    assert form is not None, "a contract with targets has a form"
    loaded = form.load()
    found_at = program_at(program)
    with (
        TemporaryDirectory(prefix="mutiny-init-") as place,
        Discovery(found_at, Path(place)) as discovery,
    ):
        found = discovery.find(hints_of(loaded.vocabulary))
    return proposed(loaded, found, str(file))


@command.command("init")
@click.argument("file", type=values.FILE, default=Path("target.toml"))
@click.option(
    "--from", "program", metavar="PROGRAM", help="Try this program in a box, and propose a file."
)
@click.option("--contract", type=values.CONTRACT, help="Which contract the file is for.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def init_target(
    file: Path, program: str | None, contract: str | None, force: bool, as_json: bool
) -> int:
    """Write a commented target file to start from.

    With --from the program is started in a box: its --help is read, the commands that make something are
    tried once, and the files, sessions, branches and databases that they made are looked at. What was seen
    stands in the file as comments.
    """
    from mutiny.cli.templates import write_template

    if program is None:
        from importlib.resources import files

        shipped = files("mutiny.targets.files").joinpath("template.toml.txt")
        text, then = shipped.read_text(encoding="utf-8"), f"mutiny target check {file}"
    else:
        text = _proposed(program, contract, file)
        then = f"mutiny target check {file} --bin {program}"
    return write_template("target init", file, text, then, force=force, as_json=as_json)
