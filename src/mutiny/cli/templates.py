"""Writing a commented file to begin with: a target, a goal."""

from __future__ import annotations

from pathlib import Path

from mutiny.cli.output import echo_wrapped


def refuse_existing(file: Path, *, force: bool) -> None:
    """Nothing that is there is overwritten unless somebody says so."""
    from mutiny.errors import UsageError

    if file.exists() and not force:
        raise UsageError(f"{file}: exists already; --force overwrites it")


def write_template(
    verb: str, file: Path, text: str, then: str, *, force: bool, as_json: bool
) -> int:
    """Write it unless something is there already; `then`: what to do with it next."""
    from mutiny.errors import StoreError

    refuse_existing(file, force=force)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {file}: {error.strerror}") from error
    if as_json:
        from mutiny.cli.envelope import tell

        tell(verb, 0, {"file": str(file)})
    else:
        echo_wrapped(f"wrote {file}; fill it in, then: {then}", 0)
    return 0
