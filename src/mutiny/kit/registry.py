"""The operations that every contract has: time, combinations, sweep points, and the fault library."""

from __future__ import annotations

from mutiny.kit import operations as common
from mutiny.kit.faults import FAULTS
from mutiny.model.operation import Operation

COMMON: tuple[type[Operation], ...] = (
    *(common.Reset, common.Sleep, common.Settle),
    *(common.Trace, common.CrashAt, common.KillAt, common.FailAt, common.FailReadAt),
    *(common.FullAt, common.TearAt, common.PowerLossAt, common.Interleave),
    *(common.ExpectError, common.Misuse, common.WrongSetting, common.Choice, common.Parallel),
    *FAULTS,
)


def registry(*own: type[Operation]) -> dict[str, type[Operation]]:
    """All operations of a contract by name: its own, and those that every contract has."""
    return {cls.__name__: cls for cls in (*COMMON, *own)}
