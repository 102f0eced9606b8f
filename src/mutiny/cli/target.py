"""`mutiny target`: list, check and create targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo, echo_rows, echo_wrapped

if TYPE_CHECKING:
    from mutiny.kit.descriptor import TargetForm
    from mutiny.modes.checkup import Covered, Tried


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
        row["here"] = "not found" if row["program"] is None else Path(str(row["program"])).name
    echo_rows([str(row[word]) for word in ("name", "contract", "here", "about")] for row in rows)
    echo("")
    echo_wrapped(
        "The third column is the program; where it is not found, --bin PATH says where it is.", 0
    )
    return 0


@command.command("check")
@click.argument("file", type=values.TARGET)
@click.option(
    "--bin",
    "program",
    metavar="PATH",
    help="Also try the program, step by step, in a box.",
)
@click.option("--live", is_flag=True, help="Also try the program found on PATH.")
@json_option
def check_target(file: str, program: str | None, live: bool, as_json: bool) -> int:
    """Check a target file (or a target's name); every mistake is named with its line.

    With --bin or --live the target is also tried step by step: what the file says is held against what is
    seen, and what has to be changed is told before anything is called a bug. At the end: which commands,
    rules and scenarios of the contract the file covers.
    """
    from mutiny.modes.checkup import coverage_of
    from mutiny.targets.registry import find_spec

    spec, origin = find_spec(file)
    excused = dict(spec.profile.not_applicable)
    if not as_json:
        echo(f"{origin}: target {spec.name!r} is well-formed")
        for rule, reason in excused.items():
            echo_wrapped(f"not applicable: {rule}: {reason}")
    tried = _try(file, program, quiet=as_json) if program is not None or live else None
    code = 0 if tried is None else tried.exit_code
    covered = coverage_of(spec, spec.make_contract("double"))
    if not as_json:
        for one in covered:
            _show_covered(one)
    else:
        from mutiny.cli.envelope import tell

        own = {
            "file": origin,
            "contract": spec.contract,
            "missing_commands": list(spec.missing),
            "not_applicable": excused,
            "covers": {one.what: one.percent for one in covered},
            "advice": [] if tried is None else [str(one) for one in tried.advice],
        }
        verdict = None if tried is None else tried.verdict.value
        tell("target check", code, own, verdict=verdict, target=spec.name)
    return code


def _show_covered(covered: Covered) -> None:
    whole = len(covered.has) + len(covered.lacks)
    lacking = f"; without {', '.join(covered.lacks)}" if covered.lacks else ""
    echo_wrapped(
        f"covers {len(covered.has)} of {whole} {covered.what} ({covered.percent} %){lacking}"
    )


def _try(file: str, program: str | None, *, quiet: bool) -> Tried:
    """Bring the target to life once, and tell what its file says otherwise than what is seen."""
    from mutiny.cli.options import DEFAULT_ROOT, make_bench
    from mutiny.cli.show import Show
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.checkup import Checkup

    bench = make_bench(file, program, "", "double", None, DEFAULT_ROOT, None)
    show = Show(quiet=quiet)
    checkup = Checkup(bench.target, RunDirectory.create(bench.root, latest=False))
    tried = checkup.run(show.listeners)
    if not quiet:
        echo("")
        for number, one in enumerate(tried.advice, 1):
            echo_wrapped(f"{number}. your file says  {one.said}", 19)
            echo_wrapped(f"   I saw           {one.saw}", 19)
            echo_wrapped(f"   change          {one.change}", 19)
        for line in tried.told.splitlines():
            echo_wrapped(line)
    return tried


def _form(contract: str) -> type[TargetForm]:
    """What files of a contract say."""
    from mutiny.contracts.catalogue import contract_named, with_targets
    from mutiny.errors import UsageError, nearest

    if contract not in with_targets():
        raise UsageError(f"unknown contract {contract!r}{nearest(contract, list(with_targets()))}")
    form = contract_named(contract).target_form
    assert form is not None, "a contract with targets has a form"
    return form.load()


def _proposed(program: str, form: type[TargetForm], file: Path) -> str:
    """A file for a program that was tried once."""
    from tempfile import TemporaryDirectory

    from mutiny.targets.discover.program import Discovery
    from mutiny.targets.discover.proposal import hints_of, proposed
    from mutiny.targets.registry import program_at

    found_at = program_at(program)
    with (
        TemporaryDirectory(prefix="mutiny-init-") as place,
        Discovery(found_at, Path(place)) as discovery,
    ):
        found = discovery.find(hints_of(form.vocabulary))
    return proposed(form, found, str(file))


def _blank(form: type[TargetForm], default: bool, file: Path) -> str:
    """A file to be filled in by hand."""
    if default:
        from importlib.resources import files

        shipped = files("mutiny.targets.files").joinpath("template.toml.txt")
        return shipped.read_text(encoding="utf-8")
    from mutiny.targets.discover.proposal import skeleton

    return skeleton(form, str(file))


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
    from mutiny.cli.templates import refuse_existing, write_template
    from mutiny.contracts.catalogue import default_for

    default = default_for("run").name
    form = _form(contract or default)
    refuse_existing(file, force=force)  # before a program is tried for minutes
    if program is None:
        text = _blank(form, contract in (None, default), file)
        then = f"mutiny target check {file}"
    else:
        text = _proposed(program, form, file)
        then = f"mutiny target check {file} --bin {program}"
    return write_template("target init", file, text, then, force=force, as_json=as_json)
