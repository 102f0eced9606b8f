"""What users read is true: commands can be given, options and names exist, counts are right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from counter_contract.contract import ABOUT as TOY

from longboat.plants import PLANTS
from mutiny import pytest_plugin
from mutiny.cli.main import EXIT_CODES, mutiny
from mutiny.cli.plants import found_by
from mutiny.contracts.catalogue import operations_of, rules_of, scenarios_about, with_targets
from mutiny.contracts.workers.scenarios import CLASSIC_SCENARIOS
from mutiny.kit.experiment import EXPERIMENT_OPERATIONS
from mutiny.model.verdict import Verdict
from mutiny.modes.accept import EXIT_CODE
from mutiny.modes.campaign_plan import EVERY
from mutiny.modes.experiment_files import library
from mutiny.targets.plants import check_plants, targets_of
from mutiny.targets.registry import find_spec, shipped

ROOT = Path(__file__).parents[2]
TOY_PROGRAM = (ROOT / "tests" / "toy" / "counter").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
END = re.compile(r"\s{2,}(?![-\s])|\s#|\s&&|\s\||;|\s>")
"""Where a command in a block ends and a remark or another command begins."""


def page_text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(r"^```[a-z]*\n(.*?)^```", text, re.S | re.M))


def commands_in(block: str) -> Iterator[str]:
    """The lines of a block that call `mutiny`, without what follows them."""
    for line in block.replace("\\\n", " ").splitlines():
        found = re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?(mutiny .*)", line)
        if found and "..." not in found[1]:
            yield END.split(found[1])[0]


@cache
def _help_pages() -> dict[str, str]:
    """The help of every verb and of every verb within one."""
    pages = {"mutiny": f"{mutiny.help}\n{EXIT_CODES}"}
    return pages | {" ".join(words): command.help or "" for words, command in mutiny.walk()}


def every_command() -> list[tuple[str, str]]:
    """Every complete command that users can copy, with the place where it stands."""
    found = [
        (named(page), line)
        for page in PAGES
        for block in blocks(page_text(page))
        for line in commands_in(block)
    ]
    found += [(name, line) for name, text in _help_pages().items() for line in commands_in(text)]
    return sorted(set(found))


def test_there_is_something_to_check() -> None:
    assert len(every_command()) > 60
    assert {"README.md", "run", "mutiny"} <= {place for place, _ in every_command()}


def understood(line: str) -> dict[str, object]:
    """What click makes of a command, without doing it."""
    words = shlex.split(line)[1:]
    root = click.Context(mutiny, info_name="mutiny", **mutiny.context_settings)
    group: click.Command | None = mutiny
    while isinstance(group, click.Group):
        if group.invoke_without_command and (not words or words[0].startswith("-")):
            break
        assert words, f"{line}: no verb"
        group = group.get_command(root, words[0])
        assert group is not None, f"{line}: no such command {words[0]!r}"
        words = words[1:]
    assert group is not None
    return (
        group.make_context(group.name, words, **mutiny.context_settings).params
        if words != ["--help"]
        else {}
    )


def test_every_command_can_be_given() -> None:
    known = {name for contract in with_targets() for name in scenarios_about(contract)} | set(TOY)
    for place, line in every_command():
        try:
            given = understood(line)
        except click.exceptions.Exit:
            continue
        except click.ClickException as error:
            pytest.fail(f"{place}: {line}: {error.format_message()}")
        names_what_is_there(place, given, known)


def test_the_command_that_finds_a_plant_can_be_given() -> None:
    found = [(one, found_by(one, targets_of(one)[0])) for one in PLANTS.values()]
    assert sum(bool(command) for _, command in found) > 100
    for plant, command in found:
        given = understood(f"mutiny {command}") if command else {}
        assert not given or f"--plant {plant.name}" in command
        known = {name for part in with_targets() for name in scenarios_about(part)}
        names_what_is_there(f"plant {plant.name}", given, known)
        for target in targets_of(plant):
            check_plants(find_spec(target)[0], plant.name)


def names_what_is_there(place: str, given: dict[str, object], known: set[str]) -> None:
    scenarios = given.get("scenarios") or given.get("scenario") or ()
    for scenario in [scenarios] if isinstance(scenarios, str) else scenarios:  # type: ignore[attr-defined]
        named_well = scenario.endswith((".json", "FILE")) or scenario in {*known, EVERY}
        assert named_well, f"{place}: {scenario}"
    plant = given.get("plant") or ""
    for one in str(plant).split(","):
        assert one in ("", "NAME") or one in PLANTS or one in TOY_PROGRAM, f"{place}: {one}"
    target = given.get("target") or "longboat"
    targets = given.get("targets") or (target,)
    for one in targets:  # type: ignore[attr-defined]
        assert one in shipped() or one.endswith(".toml") or "/" in one, f"{place}: {one}"
    for name in given.get("experiments") or ():  # type: ignore[attr-defined]
        assert name in library() or Path(name).suffix, f"{place}: {name}"


# --- options ----------------------------------------------------------------------------------------


def own_options() -> set[str]:
    return {"--help", "--version"} | {
        flag
        for _, command in mutiny.walk()
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }


PLUGIN = set(re.findall(r'"(--mutiny[a-z-]*)"', Path(pytest_plugin.__file__).read_text("utf-8")))
FOREIGN = {
    *PLUGIN,
    *(
        "--repair",
        "--yes",
        "--worker",
        "--prompt",
        "--message",
        "--home",
        "--dir",
        "--session",
    ),  # longboat's
    *("--agent-command", "--standby", "--epoch", "--prompt-file"),
    *("--resume", "--session-id", "--settings", "--print", "--continue", "--model"),  # agents'
    *("--permission-mode", "--dangerously-skip-permissions", "--output-format"),
    *("--unshare-net", "--ff-only", "--no-ff", "--porcelain", "--abort"),  # bwrap's and git's
}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_option_exists(page: Path) -> None:
    if "findings" in page.parts:
        return  # those speak of other programs
    spans = re.findall(r"`(--[a-z][a-z-]+)", page_text(page))
    missing = set(spans) - own_options() - FOREIGN
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_verb_exists(page: Path) -> None:
    for verb in re.findall(r"`mutiny ([a-z]+)", page_text(page)):
        assert mutiny.load(verb) is not None, verb


# --- numbers ----------------------------------------------------------------------------------------

PLANTED = len(PLANTS)
ON_BOARDS = sum(1 for plant in PLANTS.values() if plant.boards)
ON_BATCHES = sum(1 for plant in PLANTS.values() if plant.part)
NUMBERS = (
    ("README.md", r"(\d+) bugs that can be planted", PLANTED),
    ("README.md", r"(\d+) scenarios on longboat", len(scenarios_about("workers"))),
    ("README.md", r"(\d+) scenarios pass in", len(scenarios_about("workers"))),
    ("README.md", r"in YAML, (\d+) ready ones", len(library())),
    (
        "README.md",
        r"(\d+) findings in par",
        len(set(re.findall(r"^\| (\d+) \|", page_text(ROOT / "docs/findings/par.md"), re.M))),
    ),
    ("README.md", r"in (\d+) real programs", len(list((ROOT / "docs" / "findings").glob("*.md")))),
    ("CHANGELOG.md", r"(\d+) plants: every rule is the first", PLANTED - ON_BOARDS - ON_BATCHES),
    ("CHANGELOG.md", r"(\d+) plants on boards", ON_BOARDS),
    ("CHANGELOG.md", r"(\d+) rules, and a history checker", len(rules_of("board"))),
)


@pytest.mark.parametrize(("name", "pattern", "true"), NUMBERS)
def test_numbers_are_right(name: str, pattern: str, true: int) -> None:
    found = re.findall(pattern, page_text(ROOT / name))
    assert found, f"{name} does not say {pattern!r} any more: take it from the list"
    assert {int(number) for number in found} == {true}


def test_the_classic_scenarios_are_seven() -> None:
    assert len(CLASSIC_SCENARIOS) == 7
    assert set(operations_of("workers")) > set(EXPERIMENT_OPERATIONS)


def test_exit_codes_are_the_same_everywhere() -> None:
    told = {int(code) for code in re.findall(r"\b(\d+)(?::|  \w)", EXIT_CODES)}
    assert {verdict.exit_code for verdict in Verdict} | {2, EXIT_CODE, 70, 130, 141, 143} == told
    readme = page_text(ROOT / "README.md")
    line = next(line for line in readme.splitlines() if line.startswith("Exit codes: "))
    assert {int(code) for code in re.findall(r"\b\d+\b", line)} <= told
    assert {0, 1, 2, 3, 4, 70, 130} <= {int(code) for code in re.findall(r"\b\d+\b", line)}


# --- words ------------------------------------------------------------------------------------------

PRODUCT = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml", ".yaml")]
WRONG = re.compile(r"\bseed 00\d|\bseed's\b|\bseed_invariant\b|scenarios of the seed", re.I)


def test_a_seed_is_the_random_number_only() -> None:
    found = {named(page): WRONG.findall(page_text(page)) for page in (*PAGES, *PRODUCT)}
    assert {page: words for page, words in found.items() if words} == {}
