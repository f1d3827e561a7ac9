"""Keys: the format of a token, and hashes that match only their token."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from argon2 import extract_parameters
from argon2.low_level import Type

from appliance.api.tokens import KeyToken, hash_token, is_hash, matches
from tests.fakes.rows import each_row

SECRET = "A" * 21 + "_-z09" + "b" * 17
TEXT = f"lrs_desk7_{SECRET}"
HASH = hash_token(TEXT)


@each_row("key_id", ["master", "a", "0", "k" * 200, "7f3a"])
def test_a_token_contains_the_id_of_its_key(key_id: str) -> None:
    assert KeyToken.parse(f"lrs_{key_id}_{SECRET}") == KeyToken(key_id=key_id, text=f"lrs_{key_id}_{SECRET}")


@each_row(
    "text",
    [
        "",
        "lrs",
        "lrs__" + SECRET,
        "lrs_desk7",
        "lrs_desk7_",
        f"lrs_desk7_{SECRET[:-1]}",
        f"lrs_desk7_{SECRET}x",
        f"lrs_Desk7_{SECRET}",
        f"lrs_desk-7_{SECRET}",
        f"lrs_desk_7_{SECRET}",
        f"LRS_desk7_{SECRET}",
        f"xlrs_desk7_{SECRET}",
        f" {TEXT}",
        f"{TEXT} ",
        f"{TEXT}\n",
        f"lrs_desk7_{SECRET[:-1]}=",
        f"lrs_desk7_{SECRET[:-1]}é",
        f"lrs_désk_{SECRET}",
        f"lrs_desk7_{SECRET[:-1]}\udcff",
        f"lrs_desk٧_{SECRET}",
        "a-master-key-of-the-owners-own",
    ],
)
def test_a_text_in_another_form_is_not_a_token(text: str) -> None:
    assert KeyToken.parse(text) is None


def test_a_new_token_has_the_documented_form_and_can_be_parsed() -> None:
    token = KeyToken.make("7f3a")
    assert re.fullmatch(r"lrs_7f3a_[A-Za-z0-9_-]{43}", token.text)
    assert KeyToken.parse(token.text) == token


def test_a_hash_matches_only_its_own_token() -> None:
    assert matches(HASH, TEXT)
    for other in ("", TEXT[:-1], TEXT + "b", TEXT.swapcase(), SECRET):
        assert not matches(HASH, other)


def test_hashes_of_the_same_token_differ_and_contain_no_part_of_it() -> None:
    other = hash_token(TEXT)
    assert other != HASH
    assert matches(other, TEXT)
    assert SECRET not in other and "desk7" not in other


def test_the_hash_is_argon2id_at_a_cost_for_a_small_box() -> None:
    code = f"from appliance.api.tokens import hash_token; print(hash_token({TEXT!r}))"
    whole = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert matches(whole, TEXT) and not matches(whole, SECRET)
    cost = extract_parameters(whole)
    assert cost.type is Type.ID
    assert 8 * 1024 <= cost.memory_cost <= 32 * 1024
    assert cost.parallelism == 1


BROKEN = [
    "",
    "x",
    TEXT,
    HASH[:-1],
    HASH[:40],
    HASH + "A",
    HASH.replace("argon2id", "argon2i"),
    HASH.replace("v=19", "v=x"),
    HASH.rpartition("$")[0] + "$",
    "$argon2id$nonsense",
    "$argon2id$" + "é" * 60,
    HASH.replace("$argon2id", "$2b"),
    "\x00" * 98,
]


@pytest.mark.parametrize("stored", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_hash_is_detected_and_matches_nothing(stored: str) -> None:
    assert not is_hash(stored)
    assert not matches(stored, TEXT)


def test_a_hash_is_recognized() -> None:
    assert is_hash(HASH)
