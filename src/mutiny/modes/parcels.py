"""What a run left on another machine, packed to be sent home."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from mutiny.engine.rundir import storing
from mutiny.errors import StoreError

LARGEST = 64 << 20
"""A parcel that would be larger goes without the files of boxes."""
BOX = "box"


def pack(place: Path) -> bytes:
    """Everything in a directory."""
    whole = _packed(place, boxes=True)
    return whole if len(whole) <= LARGEST else _packed(place, boxes=False)


def _packed(place: Path, *, boxes: bool) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:

        def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
            plain = entry.isreg() or entry.isdir()
            return entry if plain and (boxes or BOX not in Path(entry.name).parts) else None

        archive.add(place, arcname=".", filter=chosen)
    return buffer.getvalue()


def unpack(parcel: bytes, place: Path) -> None:
    """Lay it out at home; nothing in it can name a place outside."""
    with storing(place):
        place.mkdir(parents=True, exist_ok=True)
        try:
            with tarfile.open(fileobj=io.BytesIO(parcel), mode="r:gz") as archive:
                archive.extractall(place, filter="data")
        except tarfile.TarError as error:
            raise StoreError(f"cannot lay out {place}: {error}") from error
