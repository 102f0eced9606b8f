"""What `--json` prints, as types: the fields of every verb, and each verb's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mutiny.model.forms import Count, Format, RunVerdict, Says, Text

Row = dict[str, Any]


class OutputError(TypedDict):
    """Why a command gave no answer."""

    kind: Literal["usage", "inconclusive", "interrupted", "failure"]
    message: Text


class Envelope(TypedDict):
    """One document a command. The first eight fields are the same for every verb; the others are the verb's
    own and are missing when there is an error.
    """

    format: Format
    verb: Annotated[str, Says(description="Empty when the command line names none.")]
    verdict: Annotated[RunVerdict | None, Says(description="Null where nothing was judged.")]
    exit_code: Literal[0, 1, 2, 3, 4, 5, 70, 129, 130, 141, 143]
    target: Annotated[str | None, Says(description="Null where there is none, or several.")]
    plant: str | None
    seed: Annotated[int | None, Says(description="The first seed of all random choices.")]
    error: Annotated[
        OutputError | None, Says(description="Why the command did not come to its own end.")
    ]


class RunOutput(TypedDict):
    """Of `mutiny run`."""

    runs: list[Row]
    left_out: dict[str, str]
    causes: list[Row]
    known: list[Row]
    times: NotRequired[Row]
    code: NotRequired[Row]


class ExploreOutput(TypedDict):
    """Of `mutiny explore`."""

    operations: int | list[Row]
    runs: NotRequired[Count]
    seconds: NotRequired[float]
    verdicts: NotRequired[Row]
    cells: NotRequired[Count]
    coverage: NotRequired[list[Row]]
    failures: NotRequired[list[Row]]
    causes: NotRequired[list[Row]]
    known: NotRequired[list[Row]]


class SweepOutput(TypedDict):
    """Of `mutiny sweep`."""

    kind: Literal["crash", "errno", "torn", "fsync", "preempt"]
    at: Row
    points: list[Row]
    causes: list[Row]
    known: list[Row]
    page: str
    left_out: Count
    trace_s: float
    judge_s: float
    first_bug: str | None


class RaceOutput(TypedDict):
    """Of `mutiny race`."""

    confidence: float
    parts: list[Row]
    known: list[Row]
    not_applicable: dict[str, str]


class SoakOutput(TypedDict):
    """Of `mutiny soak`."""

    directory: Text
    facts: Row
    criteria: list[Row]
    resumed: Count


class LoadOutput(TypedDict):
    """Of `mutiny load`."""

    cost_per_claim: Row
    loads: list[Row]
    written: str


class ExperimentRunOutput(TypedDict):
    """Of `mutiny experiment run`."""

    experiments: list[Row]
    left_out: NotRequired[
        Annotated[
            dict[str, str],
            Says(
                description="Experiments whose target lacks all that they are about, with the reason."
            ),
        ]
    ]


class ExperimentCheckOutput(TypedDict):
    """Of `mutiny experiment check`."""

    files: list[Row]


class ExperimentListOutput(TypedDict, total=False):
    """Of `mutiny experiment list`."""

    experiments: list[Row]
    language: Row


class ExperimentLogOutput(TypedDict):
    """Of `mutiny experiment log`."""

    entries: list[dict[str, object]]
    files: list[str]


class ExperimentReportOutput(TypedDict):
    """Of `mutiny experiment report`."""

    experiments: list[Row]


class ReplayOutput(TypedDict):
    """Of `mutiny replay`."""

    file: str
    times: Count
    expect: str | None
    same: Count
    runs: list[Row]


MinimiseOutput = TypedDict(
    "MinimiseOutput",
    {
        "rule": str,
        "from": Count,
        "to": Count,
        "runs": Count,
        "seconds": float,
        "complete": bool,
        "passes": Row,
        "reproduced": Row,
        "without_plant": Row | None,
        "file": str,
    },
)


class ReportOutput(TypedDict):
    """Of `mutiny report`: of one run, or with --site of all."""

    run: NotRequired[Row]
    directory: NotRequired[str]
    page: NotRequired[str]
    site: NotRequired[str]
    pages: NotRequired[Count]


class ServeOutput(TypedDict):
    """Of `mutiny serve`, once it listens."""

    address: Text
    runs: str


class CampaignOutput(TypedDict):
    """Of `mutiny campaign`; also when its crew was gone before the end."""

    directory: Text
    page: Text
    runs: Count
    finished: Count
    verdicts: Row
    seconds: float
    first_bug_s: float | None
    cells: Count
    causes: list[Row]
    known: list[Row]
    lost: list[Row]
    failures: list[Row]


class McpOutput(TypedDict, total=False):
    """Of `mutiny mcp`: its tools, or the skill that was written."""

    tools: list[Row]
    instructions: str
    file: str


class TargetListOutput(TypedDict):
    """Of `mutiny target list`."""

    targets: list[Row]


class TargetCheckOutput(TypedDict):
    """Of `mutiny target check`."""

    file: str
    contract: str
    missing_commands: list[str]
    not_applicable: dict[str, str]
    covers: Annotated[
        dict[str, int], Says(description="Percent of the contract's commands, rules and scenarios.")
    ]
    advice: Annotated[
        list[str],
        Says(
            description="What the file says, what was seen, and what to change; needs --bin or --live."
        ),
    ]


class InitOutput(TypedDict):
    """Of `mutiny target init`, `mutiny accept init` and `mutiny ci init`."""

    file: str


class ScenarioRow(TypedDict):
    """One scenario."""

    name: str
    contract: str
    about: str


class ScenariosOutput(TypedDict):
    """Of `mutiny scenarios`."""

    scenarios: list[ScenarioRow]


class PlantsOutput(TypedDict):
    """Of `mutiny plants`."""

    plants: list[Row]


class KnownOutput(TypedDict):
    """Of `mutiny known add` and `mutiny known list`."""

    entries: list[Row]


class CorpusOutput(TypedDict):
    """Of `mutiny corpus add`, `mutiny corpus run` and `mutiny corpus minimise`."""

    entries: list[Row]
    file: NotRequired[str]


class RulesOutput(TypedDict):
    """Of `mutiny rules`."""

    rules: list[Row]


class DoctorOutput(TypedDict):
    """Of `mutiny doctor`."""

    able: bool
    box: str | None
    probes: list[Row]
    faults: Row
    faults_available: Count
    faults_known: Count


class AcceptOutput(TypedDict):
    """Of `mutiny accept`."""

    passed: bool
    gates: list[Row]
    goals: list[Row]
    directory: Text


class AcceptDrillOutput(TypedDict):
    """Of `mutiny accept drill`."""

    drills: list[Row]
    directory: Text


OUTPUTS: dict[str, Any] = {
    "accept": AcceptOutput,
    "accept init": InitOutput,
    "accept drill": AcceptDrillOutput,
    "run": RunOutput,
    "explore": ExploreOutput,
    "sweep": SweepOutput,
    "race": RaceOutput,
    "load": LoadOutput,
    "soak": SoakOutput,
    "experiment run": ExperimentRunOutput,
    "experiment check": ExperimentCheckOutput,
    "experiment list": ExperimentListOutput,
    "experiment log": ExperimentLogOutput,
    "experiment report": ExperimentReportOutput,
    "replay": ReplayOutput,
    "minimise": MinimiseOutput,
    "report": ReportOutput,
    "campaign": CampaignOutput,
    "ci init": InitOutput,
    "mcp": McpOutput,
    "serve": ServeOutput,
    "target list": TargetListOutput,
    "target check": TargetCheckOutput,
    "target init": InitOutput,
    "scenarios": ScenariosOutput,
    "corpus add": CorpusOutput,
    "corpus run": CorpusOutput,
    "corpus minimise": CorpusOutput,
    "known add": KnownOutput,
    "known list": KnownOutput,
    "plants": PlantsOutput,
    "rules": RulesOutput,
    "doctor": DoctorOutput,
}
"""The own fields of each verb."""
