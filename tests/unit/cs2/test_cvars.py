from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.model import CvarSetting
from matchpod.core.requests.request_table import MAX_CVAR_BYTES, MAX_CVAR_LINES
from matchpod.cs2.cvar_names import CVAR_NAMES
from matchpod.cs2.cvars import MAX_SUGGESTIONS, is_never_allowed, read_custom_cvars

VALUE = re.compile(r"[A-Za-z0-9_.,:+#@ /-]{0,128}")

DANGEROUS = """
alias changelevel css_start exec exit get5_endmatch host_workshop_map host_timescale kick kickid log logaddress_add_http
logaddress_delall_http map matchzy_loadmatch_url meta plugin plugin_load quit rcon_password say say_team sv_cheats
sv_password sv_setsteamaccount tv_record
""".split()  # noqa: SIM905 - shorter than a list of quoted words


def reasons(text: str) -> list[tuple[int | None, str]]:
    return [(fault.line, fault.phrase) for fault in read_custom_cvars(text).faults]


def test_plain_and_quoted_lines_become_settings_in_order() -> None:
    reading = read_custom_cvars('mp_maxrounds 24\nmp_t_default_primary "weapon_ak47"\r\n\tmp_buytime\t 0.5 \n')
    assert reading.faults == ()
    assert reading.settings == (
        CvarSetting("mp_maxrounds", "24"),
        CvarSetting("mp_t_default_primary", "weapon_ak47"),
        CvarSetting("mp_buytime", "0.5"),
    )


def test_comments_and_empty_lines_are_skipped() -> None:
    text = '// rules; "of" the cup\n\n   \n  // mp_maxrounds 1\nmp_c4timer 40 // seconds\nmp_buytime "20" //x'
    assert read_custom_cvars(text).settings == (CvarSetting("mp_c4timer", "40"), CvarSetting("mp_buytime", "20"))


def test_text_without_settings_has_no_faults() -> None:
    for text in ["", "\n", "\r\n\r\n", "// nothing"]:
        assert read_custom_cvars(text) == read_custom_cvars("")
        assert not read_custom_cvars(text).faults


def test_value_may_be_empty_or_contain_spaces() -> None:
    text = 'mp_t_default_primary ""\nmp_ct_default_grenades weapon_flashbang weapon_decoy'
    assert [setting.value for setting in read_custom_cvars(text).settings] == ["", "weapon_flashbang weapon_decoy"]


def test_every_invalid_line_is_reported_and_valid_lines_are_still_read() -> None:
    reading = read_custom_cvars("mp_maxrounds 24\nquit\nmp_buytime 5\nmp_freezetime a;b")
    assert [fault.line for fault in reading.faults] == [2, 4]
    assert [setting.name for setting in reading.settings] == ["mp_maxrounds", "mp_buytime"]


def test_invalid_line_is_reported_with_the_reason() -> None:
    for line, reason in [
        ("mp_maxroundz 1", "mp_maxroundz is not a console variable that a match may set; did you mean mp_maxrounds?"),
        ("MP_MAXROUNDS 1", "MP_MAXROUNDS is not a console variable that a match may set; did you mean mp_maxrounds?"),
        ("qqqqqq 1", "qqqqqq is not a console variable that a match may set"),
        ("sv_cheats 1", "sv_cheats may not be set by a match"),
        ("sim_seed 1", "sim_seed is only allowed in simulator regions"),
        ("mp_maxrounds", 'mp_maxrounds has no value; write mp_maxrounds "" for an empty value'),
        ("mp_maxrounds // 3", 'mp_maxrounds has no value; write mp_maxrounds "" for an empty value'),
        ('mp_maxrounds "3', "the value of mp_maxrounds must end with its closing quote"),
        ('mp_maxrounds "3" 4', "the value of mp_maxrounds must end with its closing quote"),
        ('"mp_maxrounds" 3', "must begin with the name of a console variable"),
        ("mp_maxrounds;quit 3", "must begin with the name of a console variable"),
        ("mp_" + "x" * 80 + " 3", "must begin with the name of a console variable"),
    ]:
        assert reasons(line) == [(1, reason)]


def test_value_that_is_too_long_or_has_forbidden_characters_is_rejected() -> None:
    for value in [
        *(
            "1;quit",
            "a//b",
            '"a // b"',
            "1\rquit",
            "1\x0bquit",
            "1\x0cquit",
            "1\x85quit",
            "1\u2028quit",
            "1\u2029quit",
            "1\0",
        ),
        *("1\tquit", "é", "$x", "a\\b", "{a}", "it's", "a=b", "x" * 129, '"' + "x" * 129 + '"'),
    ]:
        ((line, reason),) = reasons(f"mp_buytime {value}")
        assert line == 1
        assert reason.startswith("the value of mp_buytime must be at most 128 characters, of letters")


def test_only_line_feeds_end_a_line() -> None:
    for separator in ("\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"):
        assert read_custom_cvars(f"mp_buytime 5{separator}mp_maxrounds 3").settings == ()
        assert read_custom_cvars(f"{separator}mp_buytime 5").settings == ()


def test_simulator_variables_are_allowed_only_for_simulated_servers() -> None:
    reading = read_custom_cvars("sim_scenario no_show\nsim_seed 7", allow_simulator=True)
    assert [setting.name for setting in reading.settings] == ["sim_scenario", "sim_seed"]
    assert len(reasons("sim_scenario no_show\nsim_seed 7")) == 2
    assert read_custom_cvars("sim_Seed 7\nsim_ 7", allow_simulator=True).settings == ()


def test_operator_can_allow_more_names_but_no_dangerous_ones() -> None:
    names = frozenset({"my_plugin_mode", "rcon_password", "SV_Cheats", "css_reload"})
    reading = read_custom_cvars("my_plugin_mode 1\nrcon_password x\nSV_Cheats 1\ncss_reload 1", extra_names=names)
    assert reading.settings == (CvarSetting("my_plugin_mode", "1"),)
    assert [fault.line for fault in reading.faults] == [2, 3, 4]


def test_dangerous_name_is_neither_listed_nor_accepted() -> None:
    for name in DANGEROUS:
        assert name not in CVAR_NAMES
        assert is_never_allowed(name)
        assert is_never_allowed(name.upper())
        assert not read_custom_cvars(f"{name} 1", extra_names=frozenset({name}), allow_simulator=True).settings


def test_no_listed_name_is_dangerous_and_each_is_accepted() -> None:
    assert len(CVAR_NAMES) == 526
    assert not [name for name in CVAR_NAMES if is_never_allowed(name)]
    for name in CVAR_NAMES:
        assert read_custom_cvars(f"{name} 1").settings == (CvarSetting(name, "1"),)


def test_text_length_is_bounded_in_bytes() -> None:
    assert not reasons("//" + "x" * (MAX_CVAR_BYTES - 2))
    assert reasons("//" + "x" * (MAX_CVAR_BYTES - 1)) == [(None, "must be at most 8192 bytes")]
    assert reasons("//" + "é" * (MAX_CVAR_BYTES // 2)) == [(None, "must be at most 8192 bytes")]
    assert read_custom_cvars("// \ud800").settings == ()


def test_text_length_is_bounded_in_lines() -> None:
    assert len(read_custom_cvars("mp_buytime 5\n" * MAX_CVAR_LINES).settings) == MAX_CVAR_LINES
    assert reasons("mp_buytime 5\n" * MAX_CVAR_LINES + "\n") == [(None, "must be at most 200 lines")]
    assert reasons("\n" * (MAX_CVAR_LINES + 1)) == [(None, "must be at most 200 lines")]


def test_only_the_first_faults_have_a_suggestion() -> None:
    suggested = [reason for _, reason in reasons("mp_maxroundz 1\n" * MAX_CVAR_LINES) if "did you mean" in reason]
    assert len(suggested) == MAX_SUGGESTIONS


@given(st.text(alphabet=st.sampled_from('mp_buytime 5"/;\n\r\t\u2028\x0b\0ax'), max_size=60))
def test_settings_have_a_listed_name_and_a_plain_value(text: str) -> None:
    for setting in read_custom_cvars(text).settings:
        assert setting.name in CVAR_NAMES
        assert VALUE.fullmatch(setting.value)
        assert "//" not in setting.value


@given(st.lists(st.tuples(st.sampled_from(sorted(CVAR_NAMES)), st.from_regex(VALUE, fullmatch=True)), max_size=20))
def test_quoted_values_are_parsed_unchanged(settings: list[tuple[str, str]]) -> None:
    settings = [(name, value) for name, value in settings if "//" not in value]
    text = "\n".join(f'{name} "{value}"' for name, value in settings)
    assert [(setting.name, setting.value) for setting in read_custom_cvars(text).settings] == settings
