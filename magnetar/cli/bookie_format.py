"""`magnetar bookie format`: make the directories of a bookie empty, so that it begins anew.

As `bookieformat` of Apache's shell. A bookie that has lost its entries must not start as if it had
them; so its cookie goes too: from the cluster first, since what is left after a crash in between
still says whose directories they are, and is refused by a start.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from magnetar.cli.bookie_cluster import forget
from magnetar.cli.cluster_metadata import URI_VARIABLE
from magnetar.cli.flags import load_settings, setting_options
from magnetar.cli.printing import json_option, print_json, sentences
from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from magnetar.bookie.format.cookie import Cookie
    from magnetar.bookie.server.directories import Directories


def _format(
    config: str | None,
    journal_dir: str,
    ledger_dirs: str,
    metadata_uri: str | None,
    force: bool,
    **options: Any,
) -> None:
    from magnetar.bookie.machine.disk import SystemDisk
    from magnetar.bookie.server.directories import claim
    from magnetar.cli.bookie import directory_list
    from magnetar.core.kernel.errors import NotFound
    from magnetar.process.data_directory import BOOKIE, METADATA, existing

    as_json = options.pop("as_json")
    settings = load_settings(config, options).settings
    named = directory_list(ledger_dirs)
    with (
        sentences(),
        existing(settings.storage.data_dir) as folder,
        claim(SystemDisk(), str(folder / BOOKIE), journal_dir, named) as directories,
    ):
        cookie = _owner(directories)
        if not metadata_uri and not any(folder.glob(f"{METADATA}*")):
            raise OperatorError(
                f"the bookie {cookie.bookie_id} has no metadata of its own, so it is one of a "
                "cluster, which must forget its cookie: say which with --metadata-uri"
            )
        if not force:
            raise OperatorError(
                f"nothing was changed; --force drops all entries of the bookie {cookie.bookie_id}"
            )
        if metadata_uri:
            with suppress(NotFound):  # it has been forgotten before
                forget(metadata_uri, cookie.bookie_id)
        _empty(folder, directories)
    if as_json:
        print_json({"bookie": cookie.bookie_id})
    else:
        click.echo(f"the bookie {cookie.bookie_id} has no entries any more, and begins anew")


def _owner(directories: "Directories") -> "Cookie":
    """Whose directories these are; refused if they are not those of a bookie alone, or not all."""
    from magnetar.bookie.format import cookie as cookies
    from magnetar.bookie.server.settings import BookieSettings
    from magnetar.bookie.server.small_files import read_whole

    found = None
    for place in reversed(directories.all):
        with suppress(FileNotFoundError):
            found = found or read_whole(place, cookies.VERSION_FILE)
    if found is None:
        raise OperatorError(
            f"there is no bookie in {directories.root.path}: if its disks are lost, have the "
            "cluster forget it with `magnetar bookie delete-cookie`"
        )
    try:
        cookie = cookies.decode(found.decode())
    except ValueError as error:
        raise OperatorError(f"{directories.ledgers.path}/VERSION: {error}") from error
    if cookie.bookie_id == BookieSettings().bookie_id:
        raise OperatorError(
            f"{directories.root.path} is that of a whole server, whose messages are in it: "
            "delete its data directory if you want them gone"
        )
    said = cookie.journal_directory, tuple(cookie.ledgers)
    if said != directories.names:
        raise OperatorError(
            f"the bookie {cookie.bookie_id} has its journal in {said[0]!r} and its ledgers in "
            f"{','.join(said[1])!r}: say so with --journal-dir and --ledger-dirs"
        )
    return cookie


def _empty(folder: Path, directories: "Directories") -> None:
    """Delete the files of the bookie; those that say whose they are come last."""
    from magnetar.bookie.format.cookie import VERSION_FILE
    from magnetar.process.data_directory import METADATA

    places = [Path(place.path) for place in directories.all]
    for place in places:
        for path in place.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != VERSION_FILE:
                path.unlink()
    for path in folder.glob(f"{METADATA}*"):  # what a bookie knows that is in no cluster
        path.unlink()
    for place in places:
        (place / VERSION_FILE).unlink(missing_ok=True)


def command() -> click.Command:
    return click.Command(
        "format",
        callback=_format,
        params=[
            *setting_options(("--data-dir",)),
            click.Option(["--journal-dir"], default="", metavar="DIR",
                         help="Directory of the journal, if it is not in the data directory."),
            click.Option(["--ledger-dirs"], default="", metavar="DIR,DIR",
                         help="Directories of the ledgers, if they are not in the data "
                         "directory."),
            click.Option(["--metadata-uri"], metavar="URI", envvar=URI_VARIABLE,
                         help="The cluster that forgets the bookie's cookie "
                         f"(also {URI_VARIABLE}); none for a bookie that is in none."),
            click.Option(["--force"], is_flag=True, help="Without it nothing is changed."),
            json_option(),
        ],
        help="Drop all that a bookie has stored, which must be stopped, so that it begins anew. "
        "Not for the bookie of a whole server.",
    )  # fmt: skip
