"""`magnetar standalone`: the whole server in one process."""

import gc
import logging
import os
from typing import Any

import click

from magnetar.cli.flags import load_settings, setting_options


def _standalone(config: str | None, stop_at_eof: bool, **options: Any) -> None:
    gc.disable()  # as while the commands were imported; `server.run` has it enabled again
    loaded = load_settings(config, options)
    from magnetar import server

    code = server.run(loaded.settings, config=config or "", stop_at_eof=stop_at_eof)
    logging.shutdown()
    # All is stored and closed. To take the objects of ten thousand topics apart, as the
    # interpreter would now, takes a second or more, and the drain has a deadline.
    os._exit(code)


standalone = click.Command(
    "standalone",
    callback=_standalone,
    params=[
        *setting_options(),
        click.Option(
            ["--stop-at-eof"],
            is_flag=True,
            help="Stop when standard input ends, so as not to outlive whoever holds its other end.",
        ),
    ],
    help="Run the whole server in this process, for clients of Pulsar and Kafka and over HTTP, "
    "until SIGTERM or SIGINT.",
)
