"""`magnetar config show` and `check`; `init` and `issue` are in `security/secure_start.py`."""

from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options
from magnetar.cli.security.secure_start import init, issue
from magnetar.settings import Settings, write_toml


@click.group()
def config() -> None:
    """Show, check or make the configuration."""


def _show(config: str | None, **options: Any) -> None:
    click.echo(write_toml(load_settings(config, options)), nl=False)


def _check(config: str | None, **options: Any) -> None:
    _check_files(load_settings(config, options).settings)
    click.echo("ok")


def _check_files(settings: Settings) -> None:
    """Read the files that settings name, and see who could reach a server, as its start does. No
    port of a server that may be running is tried.
    """
    from msgspec.structs import replace

    from magnetar.core.kernel.clock import SystemClock
    from magnetar.doors.certificates import ServerCertificates
    from magnetar.doors.sockets import DoorPlan, open_doors
    from magnetar.fronts import door_plans
    from magnetar.security.access import open_access

    guarded = open_access(replace(settings.security, audit_log=""), SystemClock())
    guarded.open_acl_file(settings.mqtt)
    ServerCertificates(door_plans(settings), settings.tls, guarded.trust)
    any_port = [DoorPlan("http", lambda _: 0)]
    doors = open_doors(any_port, settings, {}, authenticates=settings.security.authenticates)
    for door in doors.values():
        door.socket.close()


config.add_command(
    click.Command(
        "show",
        callback=_show,
        params=setting_options(),
        help="Print the settings in force as TOML, each with its meaning and its source.",
    )
)
config.add_command(
    click.Command(
        "check",
        callback=_check,
        params=setting_options(),
        help="Print ok, or one sentence that says what is wrong with the configuration.",
    )
)
config.add_command(init)
config.add_command(issue)
