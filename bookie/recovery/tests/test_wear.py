from magnetar.bookie.recovery import wear


def test_a_note_is_there_until_the_index_is_not(tmp_path):
    assert wear.reason(tmp_path) == ""
    wear.note(tmp_path, "it has rotted")
    assert wear.reason(tmp_path) == "it has rotted"
    (tmp_path / wear.FILE).write_bytes(b"")
    assert wear.reason(tmp_path)
