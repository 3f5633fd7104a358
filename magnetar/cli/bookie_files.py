"""`magnetar bookie read-journal`, `read-log`, `last-mark`: what stands in a bookie's files.

They read files of our bookies and of Apache's, whether or not these are running, and change
nothing. Damage is shown where it is, and the rest behind it; then the exit code is 1.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.flags import whole_number
from magnetar.cli.printing import (
    FILE,
    FOUND_DAMAGE,
    json_option,
    print_json,
    progress,
    sentences,
)
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.dump.parts import Part, Summary

MARKS = ("", "current", "ledgers/current", "bookie/ledgers/current")
"""Where lastMark may be in a directory: of ledgers, of a bookie, of a server."""


def _dumper(kind: str) -> Callable[..., None]:
    def dump(path: Path, ledger: int | None, start: int, payload: bool, as_json: bool) -> None:
        from magnetar.bookie.dump import entry_log_dump, journal_dump

        parts_of = journal_dump.parts_of if kind == "journal" else entry_log_dump.parts_of
        with sentences(), path.open("rb") as file:
            data = _mapped(file)
            _check_kind(path, data, kind)
            summary = _show(data, parts_of(data, start), ledger, payload, as_json)
        if not summary.intact:
            click.get_current_context().exit(FOUND_DAMAGE)

    return dump


def _mapped(file: Any) -> Any:
    from mmap import ACCESS_READ, mmap

    size = file.seek(0, 2)
    return mmap(file.fileno(), 0, access=ACCESS_READ) if size else b""  # mmap refuses an empty one


def _check_kind(path: Path, data: Any, kind: str) -> None:
    """Refuse a file of the other kind, which would be damage from end to end."""
    from magnetar.bookie.format import entry_log, journal

    magics = {"journal": journal.MAGIC, "log": entry_log.MAGIC}
    for other, magic in magics.items():
        if other != kind and data[: len(magic)] == magic:
            raise OperatorError(f"{path} is read with `magnetar bookie read-{other}`")


def _show(
    data: Any, parts: Iterator["Part"], ledger: int | None, payload: bool, as_json: bool
) -> "Summary":
    """Print the parts, and what they are together."""
    from magnetar.bookie.dump.parts import Tally

    tally, seen = Tally(), 0
    with progress(len(data), "reading") as bar:
        for part in parts:
            tally.count(part)
            at = getattr(part, "offset", 0)
            bar.update(at - seen)
            seen = at
            if ledger is None or _concerns(part, ledger):
                _show_part(data, part, payload, as_json)
    summary = tally.summary()
    if as_json:
        print_json(summary)
    else:
        click.echo(
            f"{summary.entries} entries of {summary.ledgers} ledgers; {summary.damaged_entries} "
            f"with a wrong digest, {summary.damages} places without a meaning"
        )
    return summary


def _concerns(part: "Part", ledger: int) -> bool:
    """Whether it is of this ledger, or is damage, which may be of any."""
    from magnetar.bookie.dump.parts import Damage

    return isinstance(part, Damage) or getattr(part, "ledger", None) == ledger


def _show_part(data: Any, part: "Part", payload: bool, as_json: bool) -> None:
    import msgspec

    from magnetar.bookie.dump.parts import EntryPart

    content = ""
    if payload and isinstance(part, EntryPart):
        body_at = part.offset + 4 + 32
        content = data[body_at : part.offset + 4 + part.size].hex()
    if as_json:
        found = msgspec.to_builtins(part, str_keys=True)
        print_json({**found, "behind_header": content} if content else found)
        return
    click.echo(_line(part))
    if content:
        click.echo(f"{'':10}  {content}")


def _line(part: "Part") -> str:
    from magnetar.bookie.dump.parts import (
        Damage,
        EntryPart,
        HeaderPart,
        LedgersMap,
        NotePart,
        PaddingPart,
    )

    match part:
        case HeaderPart(version, None):
            return f"{0:10}  header, version {version}"
        case HeaderPart(version, offset, ledgers):
            return f"{0:10}  header, version {version}, map of {ledgers} ledgers at {offset}"
        case EntryPart():
            digest = "CRC32C" if part.crc32c else "another digest, or damaged"
            return (
                f"{part.offset:10}  entry {part.ledger}:{part.entry}, {part.size} bytes, "
                f"LAC {part.last_confirmed}, length {part.length}, {digest}"
            )
        case NotePart(offset, ledger, kind, value):
            return f"{offset:10}  {kind} of ledger {ledger} {value}".rstrip()
        case PaddingPart(offset, size, seal):
            return f"{offset:10}  padding, {size} bytes" + f", seal {seal}" * bool(seal)
        case LedgersMap(offset, ledgers):
            listed = ", ".join(f"{key}: {value}" for key, value in ledgers.items())
            return f"{offset:10}  ledgers map, bytes by ledger: {listed}"
        case Damage(offset, end, what):
            return f"{offset:10}  DAMAGE up to {end}: {what}"


def _last_mark(path: Path, as_json: bool) -> None:
    from magnetar.bookie.format import journal

    found = []
    for file in _marks(path):
        with sentences():
            data = file.read_bytes()
        try:
            mark = journal.decode_mark(data)
        except ValueError as error:
            raise OperatorError(f"{file}: {error}") from error
        name = journal.file_name(mark.journal_id)
        found.append({"file": str(file), "journal": name, "offset": mark.offset})
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo(f"{each['file']}: a replay begins in {each['journal']} at {each['offset']}")


def _marks(path: Path) -> list[Path]:
    """The files with marks that a path stands for: one for each journal."""
    if path.is_file():
        return [path]
    for below in MARKS:
        if found := sorted((path / below).glob("lastMark*")):
            return [each for each in found if not each.name.endswith(".new")]
    raise OperatorError(f"there is no lastMark in {path}")


def commands() -> list[click.Command]:
    return [
        _dump_command("journal", "journal (HEX.txn)"),
        _dump_command("log", "entry log (HEX.log)"),
        click.Command(
            "last-mark",
            callback=_last_mark,
            params=[
                click.Argument(["path"], type=click.Path(exists=True, path_type=Path)),
                json_option(),
            ],
            help="Print where a replay of the journal begins. PATH is a data directory, a "
            "directory of ledgers, or a lastMark file.",
        ),
    ]


def _dump_command(kind: str, what: str) -> click.Command:
    return click.Command(
        f"read-{kind}",
        callback=_dumper(kind),
        params=[
            click.Argument(["path"], type=FILE, metavar="FILE"),
            click.Option(
                ["--ledger"], type=whole_number(0), metavar="N", help="Only what is of this ledger."
            ),
            click.Option(
                ["--from", "start"],
                type=whole_number(0),
                default=0,
                metavar="OFFSET",
                help="Begin at this offset, where a record begins.",
            ),
            click.Option(
                ["--payload"],
                is_flag=True,
                help="Print what is behind the header of each entry, in hexadecimal.",
            ),
            json_option(),
        ],
        help=f"Print what stands in one {what}, of our bookies or of Apache's, part by part. "
        "Damage is shown where it is, and what is behind it; then the exit code is 1.",
    )
