"""The command line: `magnetar standalone`, `gateway`, `bookie`, and tools for what these keep.

Invariant: an operator's mistake gives one sentence on standard error and exit code 2, never
a traceback. Commands import what they need when they run, so that the server starts fast.
"""


def main() -> None:
    import gc
    import sys

    gc.disable()  # imports make no garbage, and looking for some costs 15 ms of a start
    import click

    from magnetar.cli.root import root
    from magnetar.operator_error import OperatorError

    gc.enable()
    try:
        sys.exit(root(prog_name="magnetar", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the command's help, not a sentence
        sys.exit(error.exit_code)
    except click.ClickException as error:
        print(f"magnetar: {_sentence(error.format_message())}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except OperatorError as error:
        print(f"magnetar: {error}", file=sys.stderr)
        sys.exit(2)


def _sentence(message: str) -> str:
    """The message in the style of our others: no capital after the colon, no full stop."""
    return message[:1].lower() + message[1:].removesuffix(".")
