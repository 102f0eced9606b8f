"""The JSON that Mutiny writes, as types: what writes it is checked against them by the type checker, and
the JSON Schemas in `schemas/` are made from them (`tools/make_schemas.py`).

"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from mutiny.model.verdict import Verdict


class Says:
    """What a schema says of a type beyond the type itself, in JSON Schema's words; `state`: here stands
    what was seen of a target, in the form that its contract declares.
    """

    def __init__(self, *, state: bool = False, **said: object) -> None:
        self.state = state
        self.said = said


Format = Literal[1]
Text = Annotated[str, Says(minLength=1)]
Count = Annotated[int, Says(minimum=0)]
Positive = Annotated[int, Says(minimum=1)]
Duration = Annotated[float, Says(minimum=0)]
RuleId = Annotated[str, Says(pattern=r"^[a-z]+\.[a-z_]+$")]
Classification = Annotated[str, Says(enum=[verdict.value for verdict in Verdict])]
_OF_RUNS = [verdict for verdict in Verdict if verdict is not Verdict.EXPECTED]
RunVerdict = Annotated[str, Says(enum=[verdict.value for verdict in _OF_RUNS])]
RunExitCode = Annotated[int, Says(enum=sorted({verdict.exit_code for verdict in _OF_RUNS}))]
Technique = Annotated[str, Says(enum=["bwrap", "unshare", "cgroup", "subreaper"])]
Minimised = Annotated[str, Says(enum=["finished", "budget", "no"])]
OperationType = Annotated[str, Says(pattern="^[A-Z][A-Za-z]*$")]


class OperationForm(TypedDict):
    """An operation with its arguments."""

    type: OperationType
    args: dict[str, object]


class WrittenOperation(TypedDict):
    """An operation as a user may write it."""

    type: OperationType
    args: NotRequired[dict[str, object]]


class ViolationForm(TypedDict):
    """A broken promise, with what was seen."""

    rule: RuleId
    subject: str
    message: Text
    evidence: dict[str, object]


class ResultForm(TypedDict):
    """What executing an operation gave."""

    exit_code: Annotated[
        int | None, Says(description="null when a signal or the time limit ended the process.")
    ]
    stdout: str
    stderr: str
    duration_ms: Duration
    signal: NotRequired[int]
    timed_out: NotRequired[Literal[True]]
    argv: NotRequired[Annotated[list[str], Says(minItems=1)]]
    fired: NotRequired[Annotated[bool, Says(description="For faults: did it really happen?")]]
    target_ms: NotRequired[Duration]
    harness_error: NotRequired[str]
    details: NotRequired[dict[str, object]]
    inner: NotRequired[
        Annotated[
            list[ResultForm],
            Says(minItems=1, description="Results of the parts of a combined operation."),
        ]
    ]


State = dict[str, object]
"""What was seen of the target, in the form of its contract; empty before the first box stands."""


class JournalLine(TypedDict):
    """One executed and judged operation."""

    sequence_id: Positive
    timestamp_unix: Duration
    operation: OperationForm
    pre_state: Annotated[State, Says(state=True)]
    result: ResultForm
    post_state: Annotated[State, Says(state=True)]
    classification: Classification
    violations: list[ViolationForm]
    technique: Annotated[
        str | None,
        Says(description="How a fault was done; null for everything that is not a fault."),
    ]
    tokens: Annotated[
        list[Annotated[str, Says(pattern="^MT-[0-9a-z]+-[0-9]+$")]],
        Says(description="Markers of the work that this operation handed to the target."),
    ]
    expected: str
    inconclusive: Annotated[
        list[str], Says(description="Why the step proves nothing, where it does not.")
    ]
    own_ms: Annotated[
        float, Says(description="Mutiny's own cost: everything except the target's time.")
    ]
    coverage: Annotated[
        dict[str, object],
        Says(
            description="The cell of the coverage table that the step fills; empty for a reset.",
            propertyNames={"enum": ["status", "operation", "fault", "outcome"]},
            additionalProperties={"type": "string"},
        ),
    ]
    format: Format


class TriesForm(TypedDict):
    """How often a sequence failed in the same way, out of how many runs of it."""

    failed: Count
    tries: Count


class PassForm(TypedDict):
    """What one pass of minimising took (runs of the target), and what it won (smaller sequences)."""

    trials: Count
    won: Count


class StandingForm(TypedDict, total=False):
    """How sure a replay is, and how far minimising came."""

    reproduced: TriesForm
    without_plant: TriesForm
    minimised: Minimised
    passes: dict[str, PassForm]


class CauseForm(TypedDict):
    """What failing runs with one cause have in common, beside the rule."""

    operation: Text
    said: list[str]


class ErrorForm(StandingForm):
    """The step at which a run stopped, and what was kept of it."""

    sequence_id: Positive
    operation: OperationForm
    classification: Classification
    rule: Annotated[
        RuleId | None, Says(description="The first rule that was broken; null when none was.")
    ]
    violations: list[ViolationForm]
    inconclusive: list[str]
    expected: str
    report: Annotated[str, Says(const="error_report.md")]
    minimal_replay: Annotated[str, Says(const="minimal_replay.json")] | None
    minimal_length: Positive | None
    state_preserved_at: Text
    cause: NotRequired[CauseForm]


class SummaryForm(TypedDict):
    """What a program wants to know about a finished run."""

    format: Format
    title: str
    seed: int
    verdict: Annotated[
        RunVerdict,
        Says(description="Of the whole run; a run whose refusals were all right is a success."),
    ]
    exit_code: RunExitCode
    duration_s: Duration
    operations: Annotated[Count, Says(description="How many were executed.")]
    counts: Annotated[dict[Classification, Positive], Says(description="Steps by classification.")]
    untested: Annotated[
        list[Text],
        Says(
            description="Why a run in which nothing broke proves nothing; empty for every other run."
        ),
    ]
    not_applicable: Annotated[
        dict[RuleId, Text],
        Says(description="Rules that the target does not promise, each with the reason."),
    ]
    own_ms_mean: Annotated[
        float | None,
        Says(description="Mutiny's own cost per operation; null when there was none to measure."),
    ]
    error: Annotated[ErrorForm | None, Says(description="null when the run passed.")]
    metrics: Annotated[
        dict[str, object] | None,
        Says(
            description="The figures of the run, in its contract's words; null when it measures none."
        ),
    ]


class MachineForm(TypedDict):
    """Where it ran."""

    system: str
    isolation_asked: str | None


class BoxForm(TypedDict):
    """The walls around the run, and what they promise."""

    technique: Technique
    guarantee: str
    network: Literal["none", "host"]
    outside_writable: bool
    directory: str
    inside: str
    box_id: Text


class ProcessForm(TypedDict):
    """The process that makes a run: a pid alone may come to mean another one."""

    pid: Positive
    start: Annotated[int, Says(minimum=0, description="Clock ticks from boot to its start.")]


class PlanForm(TypedDict):
    """Everything that is known about a run before its first operation; the box is added once it stands."""

    format: Format
    mode: Text
    title: str
    contract: Text
    target: Text
    target_file: Annotated[str, Says(description="The TOML file that describes the target.")]
    program: Text
    plant: Annotated[str, Says(description="Bugs planted into longboat; empty for none.")]
    agents: Literal["double", "real"]
    seed: int
    started_unix: Duration
    argv: list[str]
    versions: Annotated[dict[str, str], Says(required=["mutiny", "python"])]
    machine: MachineForm
    process: NotRequired[ProcessForm]
    operations: list[OperationForm]
    rollback: NotRequired[list[OperationForm]]
    question: NotRequired[Annotated[str, Says(description="What an experiment is to show.")]]
    box: NotRequired[BoxForm]


class ReplayForm(TypedDict):
    """A sequence together with what it takes to repeat it."""

    format: Format
    operations: Annotated[list[WrittenOperation], Says(minItems=1)]
    contract: NotRequired[Text]
    target: NotRequired[str | None]
    plant: NotRequired[str]
    seed: NotRequired[int]
    expect: NotRequired[
        Annotated[RuleId | None, Says(description="The rule that the sequence breaks.")]
    ]
    isolation: NotRequired[
        Annotated[Technique | None, Says(description="The kind of box that it was found in.")]
    ]
    techniques: NotRequired[
        Annotated[
            list[str],
            Says(
                description="How its faults were done; a machine that lacks one of them refuses it."
            ),
        ]
    ]
    reproduced: NotRequired[
        Annotated[
            TriesForm | None,
            Says(
                description="How often it failed again in the same way. Nothing says it: nobody tried."
            ),
        ]
    ]
    without_plant: NotRequired[
        Annotated[TriesForm | None, Says(description="How often it failed without the plant.")]
    ]
    minimised: NotRequired[
        Annotated[Minimised | None, Says(description="How far minimising came.")]
    ]
    passes: NotRequired[dict[str, PassForm]]


ReplayFile = ReplayForm | Annotated[list[WrittenOperation], Says(minItems=1)]
"""`minimal_replay.json`, and the form in which a user may write a scenario."""
