"""The certificate of the tests of the front door."""

from magnetar.tests.conftest import certificate as certificate
