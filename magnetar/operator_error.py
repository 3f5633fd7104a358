"""An error that the operator can fix: one clear sentence, exit code 2, no traceback.

It is not for errors of peers (`core.kernel.errors.WireError`), nor for our own bugs (`assert`).
Code below the composition root does not know this class: `magnetar` translates errors at that
boundary.
"""


class OperatorError(Exception):
    """The message is the whole sentence, which is printed alone."""
