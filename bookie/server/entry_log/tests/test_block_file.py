"""Files in whole blocks: what is appended is there however it is flushed, and zeros behind it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.machine.disk import SystemDirectory
from magnetar.bookie.server.entry_log.block_file import BLOCK_BYTES, GATHER_BYTES, BlockFile
from magnetar.bookie.tests.real_disk import directory_at

SIZES = st.one_of(
    st.integers(1, 100),
    st.sampled_from([BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES]),
    st.sampled_from([GATHER_BYTES - 1, GATHER_BYTES, 2 * GATHER_BYTES + 7]),
)


@pytest.fixture(params=[True, False], ids=["direct", "cached"], scope="module")
def direct(request, tmp_path_factory):
    if request.param and not directory_at(tmp_path_factory.mktemp("probe")).direct:
        pytest.skip("this file system has no direct I/O")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemDirectory, "direct", request.param)
        yield request.param


@given(st.lists(st.one_of(SIZES, st.just(0)), max_size=12))
def test_what_was_flushed_is_there_and_only_zeros_behind_it(direct, sizes):
    """A size of 0 stands for a flush."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "file"
        file = BlockFile(directory_at(Path(directory)), "file")
        expected = b""
        for place, size in enumerate([*sizes, 0]):
            file.append(bytes([place + 1]) * size)
            expected += bytes([place + 1]) * size
            assert file.size == len(expected)
            if size == 0:
                file.flush()
                found = path.read_bytes()
                assert found.startswith(expected)
                assert len(found) < len(expected) + BLOCK_BYTES
                assert not any(found[len(expected) :])
        file.cut()
        file.replace_head(b"\xff" * 512)
        file.close()
        found = path.read_bytes()
        assert found[:512] == b"\xff" * 512
        assert found[512:] == expected[512:]


def test_a_file_that_is_there_already_is_not_written(tmp_path, direct):
    (tmp_path / "file").write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        BlockFile(directory_at(tmp_path), "file")
