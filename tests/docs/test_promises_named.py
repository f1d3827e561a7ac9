"""Each promise of the README names the test that keeps it, and no sentence that promises something goes without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text().split())

PROMISES: Mapping[str, str] = {
    "see the answer come once": "test_a_switch_waits_for_the_vendor_and_shows_what_the_vendor_shows",
    "without a cloud, an account": "test_it_runs_with_a_bare_python_an_empty_environment_no_home_and_no_network",
    "asks for a key once": "test_a_first_visit_asks_for_the_key_and_keeps_it",
    "It talks to no other host": "test_the_page_names_no_other_host",
    "in the same bytes whoever makes it": "test_two_clean_clones_make_the_same_bytes",
    "It unpacks once for each user": "test_concurrent_starts_unpack_once_and_all_run",
    "mends what it finds damaged": "test_an_emptied_file_heals_at_the_next_start_and_a_rotten_one_when_it_hurts",
    "removes the versions before it": "test_what_was_compiled_is_kept_soon_and_old_versions_go_after_a_minute",
    "Where there is none it writes the bundled one there": "test_it_is_written_and_told_even_if_the_start_then_fails",
    "lists every fault of configuration and Lua files at once": (
        "test_every_fault_of_every_lua_file_is_told_beside_those_of_the_configuration"
    ),
    "on a terminal it is shown once": "test_on_a_terminal_it_is_shown_once_and_written_nowhere",
    "until it has first been used": "test_it_lies_in_a_private_file_until_its_first_use_and_is_good_after_a_restart",
    "Only a hash of it is kept": "test_only_a_hash_of_the_key_is_kept_and_the_log_tells_the_path_alone",
    "The master key is not in the list of keys": (
        "test_every_key_is_listed_by_id_without_its_secret_and_the_master_key_not"
    ),
    "offers the sub-protocols": "test_a_browser_may_send_its_token_as_a_sub_protocol",
    "or appends `?token=<key>`": "test_a_browser_may_send_its_token_in_the_query",
    "Pages of other origins get at the API once": "test_pages_of_a_configured_origin_are_let_in_and_no_others",
    "a WebSocket is not subject to that": "test_a_websocket_is_subject_to_the_key_alone_whatever_its_origin",
    "bounds how often one key may write": "test_a_full_bucket_gives_its_burst_and_then_says_how_long_to_wait",
    "`--safe`: without automations": "test_a_hub_that_was_started_safe_runs_none_and_says_so",
    "and leaves nothing behind": "test_nothing_is_left_behind",
    "never over a file that exists": "test_what_exists_is_left_alone_and_what_is_missing_is_added",
    "touches nothing |": "test_it_touches_nothing_also_while_the_hub_runs",
    "says that the clock is right, where nothing synchronises it": (
        "test_one_write_by_a_clock_of_2036_needs_care_until_somebody_trusts_the_present"
    ),
    "overwrites nothing": "test_nothing_is_overwritten",
    "then what systemd sets": (
        "test_the_configuration_is_found_by_flag_environment_systemd_working_folder_executable_in_this_order"
    ),
    "stop the hub in order and within five seconds": "test_a_hub_under_load_stops_in_order_within_five_seconds",
    "a second one at once": "test_a_second_ends_it_at_once",
    "SIGHUP reloads the Lua files": "test_a_hangup_reloads_every_folder_of_lua_files",
    "Exit codes: 0 stopped as asked": "test_help_explains_commands_and_lists_every_exit_code",
    "is damaged or cannot be read": "test_a_store_without_a_whole_snapshot_is_not_started_empty",
    "A scene that sleeps holds nothing up": "test_hundreds_asleep_hold_no_thread",
    "or by itself with `watch = true`": "test_a_saved_file_is_in_force_where_the_folder_is_watched",
    "and everything stays as it was": "test_a_reload_with_faults_lists_all_of_every_file_and_changes_nothing",
    "nothing of the box but the home is in reach": "test_all_hostile_scripts_end_with_clear_errors",
    "says what the home does by itself": "test_the_readmes_automation_is_sound",
    "when it has rested for `debounce_secs`": (
        "test_debounce_waits_until_the_value_has_rested_and_tells_the_last_one"
    ),
    "once a local day": "test_every_zone_fires_once_a_day_and_opens_its_windows_to_the_minute",
    "on no day without a sunrise": "test_a_polar_place_has_days_without_sunset_and_the_rest_goes_on",
    "`all`, `any` and `none` hold others": (
        "test_conditions_agree_with_a_direct_evaluation_and_blame_the_same_branch"
    ),
    "tells of every trigger what came of it": (
        "test_history_tells_why_an_automation_did_not_run_with_the_values_compared"
    ),
    "in no time and touching nothing": "test_a_year_takes_seconds",
    "A box without a clock of its own starts in the past": (
        "test_a_box_that_does_not_know_the_time_holds_back_what_waits_for_it_and_says_why"
    ),
    "`lares clock trust` says that it is right": "test_where_no_hub_runs_the_next_one_trusts_it",
    "fires once after the start": "test_what_fell_into_a_stop_of_at_most_five_minutes_rings_once",
    "is paused for a minute": "test_an_automation_that_sets_itself_off_is_paused_for_a_minute_and_says_so",
    "starts the hub without automations": "test_a_hub_that_was_started_safe_runs_none_and_says_so",
    "ends what runs and waits of it at once": "test_to_cancel_ends_what_runs_in_a_sleep_and_what_waits",
    "when its schedules fall due next, at most ten times": "test_a_schedule_is_due_next_when_diagnostics_say",
    "only the answer to POST holds the secret": (
        "test_every_key_is_listed_by_id_without_its_secret_and_the_master_key_not"
    ),
    "and only what changed": "test_a_change_and_its_reverse_write_nothing",
    "changes are answered 503": "test_it_answers_503_shows_nothing_and_works_again_when_the_card_does",
    "and all heals by itself": "test_a_filesystem_that_is_filled_to_the_brim_and_freed_again",
    "`--slow` adds the long proofs": "test_help_names_every_command",
}
"""Words of the README, and the test that fails where they are not true."""

PROMISING = re.compile(
    r"\b([Nn]ever|[Nn]othing|[Aa]lways|[Oo]nly|at most|within|once|none|cannot|without|no other|by itself|stays?)\b"
)


def _sentences() -> Iterator[str]:
    """Each sentence of the README beside its headings, code and pictures."""
    text = re.sub(
        r"```.*?```|<img[^>]*>|^#.*?$", "", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE
    )
    for block in re.split(r"\n\s*\n|\n(?=\||- )", text):
        yield from re.split(r"(?<=[.;])\s", " ".join(block.split()))


def test_each_promise_names_a_test_that_is_there() -> None:
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    wrong = [words for words, test in PROMISES.items() if words not in README or test not in there]
    assert not wrong


def test_each_sentence_that_promises_something_is_named() -> None:
    promising = [each for each in _sentences() if PROMISING.search(each)]
    unnamed = [each for each in promising if not any(words in each for words in PROMISES)]
    assert len(promising) > 40
    assert not unnamed
