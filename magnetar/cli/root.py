"""The tree of commands."""

import click

from magnetar.cli import bookie_checks, bookie_cluster, bookie_files, bookie_format, bookie_recovery
from magnetar.cli.bookie import bookie
from magnetar.cli.config import config
from magnetar.cli.gateway import gateway
from magnetar.cli.ledger import ledger
from magnetar.cli.metadata import metadata
from magnetar.cli.recovery import recovery, switches
from magnetar.cli.security.access import access
from magnetar.cli.security.scram import scram
from magnetar.cli.security.token import token
from magnetar.cli.security.user import user
from magnetar.cli.standalone import standalone


def _show_version(context: click.Context, _option: click.Parameter, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        _print_version()
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Same as the command `version`.",
)
def root() -> None:
    """One light server that stock Pulsar, Kafka and MQTT clients connect to unmodified."""


@root.command()
def version() -> None:
    """Print the versions of Magnetar and of its Python, and whether its codec is compiled."""
    _print_version()


def _print_version() -> None:
    import platform
    from importlib import import_module

    from magnetar import __version__
    from magnetar.core import native
    from magnetar.core.native import sources

    system = f"{platform.system()} {platform.machine()}"
    click.echo(f"magnetar {__version__} (Python {platform.python_version()}, {system})")
    for module in (
        "magnetar.bookie.format.entries",
        "magnetar.core.entry.header",
        "magnetar.wire.pulsar.hot",
    ):
        import_module(module)  # importing decides between compiled and pure
    click.echo(f"codec: {native.described()}")
    click.echo(f"hot path: {sources.described()}")


root.add_command(standalone)
root.add_command(gateway)
root.add_command(recovery)
root.add_command(config)
root.add_command(metadata)
root.add_command(token)
root.add_command(access)
root.add_command(scram)
root.add_command(user)
for _command in (
    *bookie_cluster.commands(),
    *bookie_files.commands(),
    bookie_format.command(),
    *bookie_checks.commands(),
    *bookie_recovery.commands(),
    *switches(),
):
    bookie.add_command(_command)
root.add_command(bookie)
root.add_command(ledger)
