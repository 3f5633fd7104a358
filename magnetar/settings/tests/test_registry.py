"""The list of settings is complete, described and unambiguous."""

from magnetar.settings import FLAGS, SETTINGS


def test_every_setting_is_described_in_one_line() -> None:
    for path, setting in SETTINGS.items():
        assert setting.description, path
        assert "\n" not in setting.description, path
        assert setting.description.endswith("."), path
        assert setting.expected, path


def test_variables_are_distinct() -> None:
    variables = [setting.variable for setting in SETTINGS.values()]
    assert len(set(variables)) == len(variables)


def test_flags_stand_for_settings() -> None:
    assert set(FLAGS.values()) <= set(SETTINGS)


def test_switches_turn_something_off() -> None:
    for flag, path in FLAGS.items():
        is_switch = SETTINGS[path].bare_type is bool
        assert flag.startswith("--no-") == is_switch
        assert SETTINGS[path].default is True or not is_switch
