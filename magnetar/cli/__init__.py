"""The command line: `magnetar standalone`, `gateway`, `bookie`, and tools for what these keep.

Invariant: an operator's mistake gives one sentence on standard error and exit code 2, never
a traceback; an interrupt ends a command with 130, whatever it waits for. Commands import what they
need when they run, so that the server starts fast.
"""

INTERRUPTED = 130
"""128 and the number of SIGINT, as a shell shows it."""


def main() -> None:
    import gc
    import sys

    gc.disable()  # imports make no garbage, and looking for some costs 15 ms of a start
    import click

    from magnetar.cli import printing
    from magnetar.cli.root import root
    from magnetar.operator_error import OperatorError

    gc.enable()
    printing.open_output()
    try:
        sys.exit(root(prog_name="magnetar", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the command's help, not a sentence
        sys.exit(error.exit_code)
    except click.ClickException as error:
        print(f"magnetar: {_sentence(error.format_message())}", file=sys.stderr)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except OperatorError as error:
        print(f"magnetar: {error}", file=sys.stderr)
        sys.exit(2)
    except printing.OutputFailed as failure:
        printing.discard()
        if failure.reader_is_gone:
            sys.exit(printing.READER_GONE)
        print(f"magnetar: {failure}", file=sys.stderr)
        sys.exit(2)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        sys.exit(INTERRUPTED)


def _sentence(message: str) -> str:
    """The message in the style of our others: no capital after the colon, no full stop."""
    return message[:1].lower() + message[1:].removesuffix(".")
