import crc32c as package

from magnetar.core.kernel.checksum import crc32c


def test_it_is_the_packages_own() -> None:
    assert crc32c(b"123456789") == package.crc32c(b"123456789") == 0xE3069283


def test_it_goes_on_from_a_value_and_takes_any_buffer() -> None:
    whole = crc32c(b"headerbody")
    assert crc32c(memoryview(bytearray(b"body")), crc32c(b"header")) == whole
