"""`magnetar standalone`: the whole server in one process."""

import gc
from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options


def _standalone(config: str | None, stop_at_eof: bool, **options: Any) -> None:
    gc.disable()  # as during the imports of the commands; `server.run` enables it again
    loaded = load_settings(config, options)
    from magnetar import server

    server.leave(server.run(loaded.settings, config=config or "", stop_at_eof=stop_at_eof))


standalone = click.Command(
    "standalone",
    callback=_standalone,
    params=[
        *setting_options(),
        click.Option(
            ["--stop-at-eof"],
            is_flag=True,
            help="Stop when standard input ends, so as not to outlive the process that feeds it.",
        ),
    ],
    help="Run the whole server in this process, for Pulsar, Kafka, MQTT and HTTP clients, until "
    "SIGTERM or SIGINT.",
)
