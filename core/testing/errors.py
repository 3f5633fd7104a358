"""The errors that a front's table of error codes must contain."""

from magnetar.core.kernel import errors


def leaves() -> set[type[errors.BrokerError]]:
    """The leaves among the classes of `core/kernel/errors.py`."""
    named = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
    }
    return {kind for kind in named if not named & set(kind.__subclasses__())}
