"""`magnetar config show` and `check`; `init` and `issue` are in `security/secure_start.py`."""

from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options
from magnetar.cli.security.secure_start import init, issue
from magnetar.settings import write_toml


@click.group()
def config() -> None:
    """Show, check or make the configuration."""


def _show(config: str | None, **options: Any) -> None:
    click.echo(write_toml(load_settings(config, options)), nl=False)


def _check(config: str | None, **options: Any) -> None:
    load_settings(config, options)
    click.echo("ok")


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
