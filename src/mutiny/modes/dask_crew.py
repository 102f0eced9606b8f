"""A campaign's runs on dask.distributed: one task a run, one process a task.

The scheduler must not try a task again by itself (allowed failures: 0): what a dead worker had under way is
named lost here, and run again under a new id. Only as many tasks are handed over as there are threads, so
that what was started is under way. Where the campaign's directory can be seen, a worker writes into it;
elsewhere it packs what a run left and sends it home.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny import __version__
from mutiny.engine.campaigns import PLAN
from mutiny.errors import TechniqueMissing, UsageError
from mutiny.modes.crew import CrewGone, Delivered, Missing, carry_out
from mutiny.modes.own_command import Answer
from mutiny.modes.parcels import pack, unpack

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

ANSWER_S = 10.0
"""So long a scheduler has to answer."""
NOBODY_S = 60.0
"""Without any worker for so long nobody will come."""
SEEN_S = 1.0
"""How long it is believed how many threads there are."""


class DaskCrew:
    """The threads of a cluster's workers."""

    def __init__(self, client: Client, folder: Path, home: Path, own: LocalCluster | None) -> None:
        """`home`: each attempt's runs go into a folder in it; `own`: the cluster that ends with this."""
        self._client, self._cluster = client, own
        self._folder, self._home = folder, home
        self._mark = campaign_mark(home)
        self._futures: dict[str, Future[Any]] = {}
        self._over: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._seen = self._met = float("-inf")
        self._threads = 0
        self._met = time.monotonic()

    @property
    def slots(self) -> int:
        now = time.monotonic()
        if now - self._seen > SEEN_S:
            self._seen = now
            with self._spoken():
                self._threads = sum(self._client.nthreads().values())
            if self._threads:
                self._met = now
            elif now - self._met > NOBODY_S and not self._futures:
                raise CrewGone(f"no worker came within {NOBODY_S:.0f} s; go on with --resume")
        return self._threads

    def start(self, id_: str, words: Sequence[str]) -> None:
        """As a task with a key of its own, which is never tried twice."""
        with self._spoken():
            future = self._client.submit(
                on_worker,
                tuple(words),
                str(self._folder),
                str(self._home / id_),
                self._mark,
                key=f"mutiny-{self._mark[:12]}-{id_}",
                retries=0,
                pure=False,
            )
        self._futures[id_] = future
        future.add_done_callback(lambda _: self._over.put(id_))

    def next(self, timeout_s: float) -> Delivered | Missing | None:
        try:
            id_ = self._over.get(timeout=timeout_s)
        except queue.Empty:
            self._require_scheduler()
            return None
        future = self._futures.pop(id_)
        if future.status == "error":
            error = future.exception()
            died = type(error).__name__ == "KilledWorker"
            return Missing(id_, "its worker died" if died else f"its task failed: {error!r:.200}")
        if future.status != "finished":
            self._require_scheduler()
            return Missing(id_, f"the scheduler let it go ({future.status})")
        with self._spoken():
            answer, seconds, where, parcel = future.result(timeout=ANSWER_S)
        if parcel is not None:
            unpack(parcel, self._home / id_)
        return Delivered(id_, Answer(**answer), seconds, where)

    def close(self) -> None:
        """What is under way on workers of others goes to its end there, and nobody counts it."""
        with contextlib.suppress(Exception):  # whoever is gone needs no goodbye
            self._client.cancel(list(self._futures.values()), force=True)
            self._client.close(timeout=ANSWER_S)
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=ANSWER_S)

    def _require_scheduler(self) -> None:
        if self._client.status != "running":
            raise CrewGone("the scheduler is gone; go on with --resume")

    @contextlib.contextmanager
    def _spoken(self) -> Any:
        """Speaking with a scheduler that is gone."""
        try:
            yield
        except (OSError, TimeoutError, ValueError) as error:
            raise CrewGone(f"the scheduler is gone ({error}); go on with --resume") from error


def on_worker(
    words: tuple[str, ...], folder: str, home: str, mark: str
) -> tuple[dict[str, Any], float, str, bytes | None]:
    """Carry one command out, on whatever machine this is."""
    import socket

    from distributed import get_worker

    where = f"{socket.gethostname()} {get_worker().address}"
    place = Path(home)
    here = Path(folder) if Path(folder).is_dir() else Path.cwd()
    if campaign_mark(place.parent) == mark:
        answer, seconds = carry_out(words, here, place)
        return asdict(answer), seconds, where, None
    with tempfile.TemporaryDirectory(prefix="mutiny-run-") as scratch:
        answer, seconds = carry_out(words, here, Path(scratch))
        told = asdict(answer)
        told["document"] = _moved(told["document"], scratch, home)
        return told, seconds, where, pack(Path(scratch))


def _moved(value: Any, here: str, home: str) -> Any:
    """What a command said, with the places at which everything will lie."""
    if isinstance(value, str):
        return value.replace(here, home)
    if isinstance(value, dict):
        return {name: _moved(one, here, home) for name, one in value.items()}
    return [_moved(one, here, home) for one in value] if isinstance(value, list) else value


def campaign_mark(home: Path) -> str:
    """Which campaign a directory of runs belongs to; empty where none can be seen."""
    try:
        return hashlib.sha256((home.parent / PLAN).read_bytes()).hexdigest()
    except OSError:
        return ""


def connect(scheduler: str | None, workers: int, slots: int, folder: Path, home: Path) -> DaskCrew:
    """A crew at a scheduler's address, or on a cluster of our own when none is given."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ModuleNotFoundError as error:
        needed = "pip install 'mutiny[cluster]'"
        raise TechniqueMissing(f"a campaign on dask needs {error.name}: {needed}") from None
    if scheduler is None:
        with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=-(-slots // workers),
                processes=True,
                memory_limit=0,
                dashboard_address=None,
                silence_logs="ERROR",
            )
            return DaskCrew(Client(cluster), folder, home, cluster)
    try:
        client = Client(scheduler, timeout=ANSWER_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise TechniqueMissing(f"the scheduler at {scheduler} does not answer: {error}") from None
    try:
        _require_right(client, scheduler)
    except BaseException:
        client.close()
        raise
    return DaskCrew(client, folder, home, None)


def _require_right(client: Client, scheduler: str) -> None:
    """A scheduler that tries again by itself, or workers with another Mutiny, would falsify a campaign."""
    allowed = client.run_on_scheduler(_allowed_failures)
    if allowed != 0:
        raise UsageError(
            f"the scheduler at {scheduler} tries a task again by itself ({allowed} times): start it with "
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0"
        )
    for worker, version in client.run(_version, on_error="return").items():
        if version != __version__:
            raise UsageError(f"the worker {worker} has not Mutiny {__version__} but: {version!r}")


def _allowed_failures(dask_scheduler: Any = None) -> int:
    return int(dask_scheduler.allowed_failures)


def _version() -> str:
    return __version__
