"""Every version of these messages, against two other codecs."""

import pytest

from magnetar.wire.kafka.messages import quotas
from magnetar.wire.kafka.messages.tests.oracle import check, name_of, versions_of


@pytest.mark.parametrize(("api", "side", "version"), versions_of(quotas), ids=name_of)
def test_others_read_and_write_the_same(api, side, version):
    check(api, side, version)
