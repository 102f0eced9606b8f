"""What Mutiny itself costs per operation, with three workers, beside what the target takes.

    python benchmarks/own_cost.py [--rounds 3]

Own cost is everything except the target's own time and deliberate waits: starting the command in
the box, looking at state, processes, tmux and git, judging, writing the journal. Printed by
operation, as milliseconds and as a share.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from mutiny.contracts.workers import operations as op
from mutiny.engine.journal import Step
from mutiny.kit import operations as common
from mutiny.model.operation import Kind, Operation
from mutiny.modes.bench import Assignment, Bench
from mutiny.targets.registry import find_target

LIMIT_MS = 25.0
WORKERS = ("alpha", "beta", "gamma")


def sequence() -> tuple[Operation, ...]:
    """A day in the life of three workers."""
    operations: list[Operation] = [common.Reset(), op.Init(), op.Up()]
    operations += [op.Add(name) for name in WORKERS]
    operations += [op.WaitForIdle(name) for name in WORKERS]
    operations += [op.Start(name, f"Create {name}.txt") for name in WORKERS]
    operations += [op.WaitForNeedsReview(name) for name in WORKERS]
    for name in WORKERS:
        operations += [
            op.Review(name),
            op.Accept(name),
            op.Status(),
            common.ExpectError(op.Accept(name)),
        ]
    operations += [op.Doctor(), op.KillDaemon(), op.Up(), common.Settle(), op.Down()]
    return tuple(operations)


def measure(rounds: int) -> list[Step]:
    """All steps of all rounds, the making of boxes left out."""
    steps: list[Step] = []
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(find_target("longboat"), Path(directory))
        for seed in range(rounds):
            outcome = bench.run(Assignment(sequence(), "own cost", seed))
            if outcome.failed_step is not None:
                raise SystemExit(f"the run did not pass: {outcome.rule or outcome.verdict.value}")
            steps += outcome.steps[1:]
    return steps


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    steps = measure(parser.parse_args().rounds)
    print(
        f"{'operation':<20} {'n':>4} {'own p50':>9} {'own max':>9} {'target p50':>11} {'own/target':>11}"
    )
    for name in dict.fromkeys(step.operation.type for step in steps):
        group = [step for step in steps if step.operation.type == name]
        own = [step.own_ms for step in group]
        target = statistics.median(step.result.target_ms for step in group)
        share = f"{statistics.median(own) / target:.2f}" if target else "-"
        print(
            f"{name:<20} {len(group):>4} {statistics.median(own):>7.1f}ms {max(own):>7.1f}ms "
            f"{target:>9.1f}ms {share:>11}"
        )
    own = [step.own_ms for step in steps if step.operation.kind is not Kind.CONTROL]
    print(
        f"own cost per operation with {len(WORKERS)} workers: mean {statistics.mean(own):.1f} ms, "
        f"p50 {statistics.median(own):.1f} ms, p95 {sorted(own)[int(len(own) * 0.95)]:.1f} ms "
        f"(limit {LIMIT_MS:g} ms)"
    )
    return 0 if statistics.mean(own) <= LIMIT_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
