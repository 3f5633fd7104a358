"""The errors that a front's table of error codes must contain."""

from magnetar.core.kernel import errors


def leaves() -> set[type[errors.BrokerError]]:
    """Classes of core.errors alone: a class derived elsewhere has the code of its base."""
    named = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
    }
    return {kind for kind in named if not named & set(kind.__subclasses__())}
