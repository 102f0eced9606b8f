"""Resume drills as a table and as a picture: moment against way of going on, coloured by outcome."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.abilities import Drilled
from mutiny.report import page


def table(found: Sequence[Drilled]) -> tuple[list[str], list[tuple[str, list[Drilled]]]]:
    """The ways, and for each moment its outcomes in their order."""
    ways = list(dict.fromkeys(one.drill.way for one in found))
    moments = dict.fromkeys(one.drill.moment for one in found)
    by_place = {(one.drill.moment, one.drill.way): one for one in found}
    return ways, [(moment, [by_place[moment, way] for way in ways]) for moment in moments]


def markdown(found: Sequence[Drilled], target: str) -> str:
    """The table."""
    ways, rows = table(found)
    lines = [f"# Resume drills on {target}", "", f"| moment | {' | '.join(ways)} |"]
    lines.append(f"|{'---|' * (len(ways) + 1)}")
    lines += [f"| {moment} | {' | '.join(map(_word, cells))} |" for moment, cells in rows]
    told = [one for one in found if one.verdict != "success"]
    lines += ["", *(f"- {one.drill.moment}, {one.drill.way}: {one.reason}" for one in told)]
    return "\n".join(lines).rstrip() + "\n"


def _word(one: Drilled) -> str:
    return "kept" if one.verdict == "success" else f"{one.verdict} {one.rule}".strip()


def html(found: Sequence[Drilled], target: str) -> str:
    """The picture."""
    ways, rows = table(found)
    good = all(one.verdict == "success" for one in found)
    return page.render(
        "drill.html",
        kind="Resume drills",
        title=f"Resume drills on {target}",
        verdict="success" if good else "bug",
        word="ALL GREEN" if good else "NOT ALL GREEN",
        ways=ways,
        rows=[(moment, [(one.verdict, _word(one)) for one in cells]) for moment, cells in rows],
    )
