"""`magnetar gateway`: all fronts over the bookies of a BookKeeper cluster."""

import gc
from functools import partial
from typing import Any

import click

from magnetar.cli.cluster_metadata import URI_VARIABLE
from magnetar.cli.flags import load_settings, number, setting_options, whole_number
from magnetar.operator_error import OperatorError
from magnetar.settings import FLAGS

PASSWORD_VARIABLE = "MAGNETAR_LEDGER_PASSWORD"

FLAGS_OF_STORAGE = ("--data-dir", "--no-sync", "--bookie-port")
"""A gateway stores nothing on its own machine."""
OPTIONS = (
    "digest_type",
    "ledger_password",
    "zk_timeout_seconds",
    "explicit_lac_seconds",
    "bookie_error_threshold",
)
"""The fields of `GatewayOptions` that are flags as they are."""


def _gateway(config: str | None, metadata: str, bookkeeper: str, **options: Any) -> None:
    gc.disable()  # as during the imports of the commands; `server.run` enables it again
    from magnetar import gateway_server, server
    from magnetar.bookie.client.quorum.placement import RackRules
    from magnetar.bookie.client.quorum.striping import Striping
    from magnetar.storage.cluster import GatewayOptions, with_messages_that_fit

    sizes = [options.pop(name) for name in ("ensemble_size", "write_quorum", "ack_quorum")]
    striping = Striping(*sizes)
    try:
        striping.check()
    except ValueError as error:
        raise OperatorError(str(error)) from None
    racks = RackRules(*[options.pop(name) for name in ("min_racks", "enforced", "aware")])
    chosen = GatewayOptions(
        metadata,
        bookkeeper,
        striping,
        racks=racks,
        reconnects=options.pop("zk_session_expired_policy") == "reconnect",
        **{name: options.pop(name) for name in OPTIONS},
    )
    settings = with_messages_that_fit(load_settings(config, options).settings)
    server.leave(
        server.run(
            settings,
            config=config or "",
            serve=partial(gateway_server.serve, chosen),
            stored_at=f"on the bookies of {bookkeeper}, metadata in {metadata}",
        )
    )


def _quorum(flag: str, text: str) -> click.Option:
    return click.Option(
        [flag],
        type=whole_number(1),
        default=2,
        show_default=True,
        metavar="N",
        help=f"{text} Of new ledgers.",
    )


gateway = click.Command(
    "gateway",
    callback=_gateway,
    params=[
        click.Option(
            ["--metadata"],
            required=True,
            metavar="zk:HOST:PORT",
            help="Where metadata of topics is kept, as Pulsar's metadataStoreUrl.",
        ),
        click.Option(
            ["--bookkeeper"],
            required=True,
            envvar=URI_VARIABLE,
            metavar="URI",
            help="The cluster of bookies, such as zk+hierarchical://HOST:2181/ledgers "
            f"(also {URI_VARIABLE}).",
        ),
        _quorum("--ensemble-size", "How many bookies a ledger is spread over."),
        _quorum("--write-quorum", "How many bookies store each entry."),
        _quorum("--ack-quorum", "How many of them must have stored it before it is acknowledged."),
        click.Option(
            ["min_racks", "--min-racks-per-write-quorum"],
            type=whole_number(1),
            default=2,
            show_default=True,
            metavar="N",
            help="In how many racks bookies of a write quorum are, as far as there are so many.",
        ),
        click.Option(
            ["enforced", "--enforce-min-racks-per-write-quorum"],
            is_flag=True,
            help="Make no ledger with fewer racks in a write quorum, and rather do without a lost "
            "bookie than leave fewer.",
        ),
        click.Option(
            ["aware", "--rack-aware/--no-rack-aware"],
            default=True,
            show_default=True,
            help="Whether racks matter.",
        ),
        click.Option(
            ["--digest-type"],
            type=click.Choice(["CRC32C", "CRC32", "MAC", "DUMMY"]),
            default="CRC32C",
            show_default=True,
            help="What readers know entries of new ledgers by to be intact, as Pulsar's "
            "managedLedgerDigestType; MAC needs the password, DUMMY is nothing.",
        ),
        click.Option(
            ["--ledger-password"],
            default="",
            envvar=PASSWORD_VARIABLE,
            metavar="PASSWORD",
            help="Of all ledgers, as Pulsar's managedLedgerPassword; none by default "
            f"(also {PASSWORD_VARIABLE}, which no list of processes shows).",
        ),
        click.Option(
            ["zk_timeout_seconds", "--zk-timeout"],
            type=number(0.1),
            default=10.0,
            show_default=True,
            metavar="SECONDS",
            help="Of the sessions with ZooKeeper.",
        ),
        click.Option(
            ["--zk-session-expired-policy"],
            type=click.Choice(["shutdown", "reconnect"]),
            default="shutdown",
            show_default=True,
            help="What to do when a session ends: end, since another gateway may run, or serve on "
            "until there is one, as Pulsar's zookeeperSessionExpiredPolicy.",
        ),
        click.Option(
            ["explicit_lac_seconds", "--explicit-lac-interval"],
            type=number(0),
            default=0.0,
            show_default=True,
            metavar="SECONDS",
            help="How often bookies are told the last confirmed entry of ledgers that are idle, "
            "for those who read ledgers past this gateway; 0 is never.",
        ),
        click.Option(
            ["--bookie-error-threshold"],
            type=whole_number(0),
            default=0,
            show_default=True,
            metavar="N",
            help="How many errors of a bookie within a minute keep new ledgers from it for half an "
            "hour, as long as there are others; 0 is never.",
        ),
        *setting_options([flag for flag in FLAGS if flag not in FLAGS_OF_STORAGE]),
    ],
    help="Run the whole server over the bookies of a BookKeeper cluster, ours or Apache's, until "
    "SIGTERM or SIGINT. A cluster has one gateway at a time.",
)
