"""ARCHITECTURE.md names every module once, in its folder, with what the module says of itself."""

from __future__ import annotations

import re
from pathlib import Path

import modules as tool
import pytest
from test_layers import LAYERS, SOURCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FIVE = ("a fault", "a rule", "a probe", "a target", "a contract")


def test_the_list_of_modules_is_complete_and_true() -> None:
    own = PAGE.partition(tool.HEADING)[2]
    assert own, "the page has its list"
    assert tool.HEADING + own == tool.listed(), "run `make modules`"


def test_every_module_says_what_it_is() -> None:
    for _, modules in tool.folders():
        for path in modules:
            assert len(tool.sentence(path)) > 10, f"{path} has no docstring"


@pytest.mark.parametrize("what", FIVE)
def test_it_says_where_to_add_something(what: str) -> None:
    assert f"**Where do I add {what}?**" in PAGE


@pytest.mark.parametrize("layer", [one for one in LAYERS if (SOURCE / "mutiny" / one).is_dir()])
def test_every_layer_is_in_the_table(layer: str) -> None:
    assert f"`{layer}/`" in PAGE.partition(tool.HEADING)[0]


def test_every_path_that_it_names_exists() -> None:
    text = PAGE.partition(tool.HEADING)[0]
    for name in re.findall(r"`((?:src|tests|docs|tools)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(
        r"`((?:model|kit|contracts|targets|faults|probes|engine)/[\w/.-]+)`", text
    ):
        if "<" not in name:
            assert (SOURCE / "mutiny" / name).exists(), name


def included() -> list[str]:
    page = (ROOT / "docs" / "new-contract.md").read_text(encoding="utf-8")
    return re.findall(r"^```(?:python|toml|yaml)\n(.*?)^```", page, re.S | re.M)


def bare(code: str) -> str:
    """Code without its indentation and empty lines: a page shows methods without their class."""
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())


@pytest.mark.parametrize("block", included())
def test_the_code_of_the_walk_through_is_that_of_the_toy(block: str) -> None:
    toy = ROOT / "tests" / "toy"
    files = (*toy.glob("*.*"), *(toy / "counter_contract").glob("*.py"))
    assert any(bare(block) in bare(path.read_text(encoding="utf-8")) for path in files), block


def test_the_walk_through_has_code() -> None:
    assert len(included()) >= 10
