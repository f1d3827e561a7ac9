"""The targets of the single file. The lock contains all packages for each target."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from firmware.targets import UnknownTarget, describe, read_targets

ROOT = Path(__file__).parents[2]
TABLE = read_targets(ROOT / "firmware" / "targets.toml")


def test_there_are_sixteen_targets() -> None:
    assert len({target.tag for target in TABLE.targets}) == len(TABLE.targets) == 16
    assert {target.python for target in TABLE.targets} == {"3.11", "3.12", "3.13", "3.14"}


def test_a_target_has_the_tag_of_its_pythons_modules() -> None:
    assert TABLE.targets[0].tag == "cpython-311-aarch64-linux-gnu"
    [musl] = TABLE.choose(["cpython-314-x86_64-linux-musl"])
    assert (musl.python, musl.machine, musl.libc) == ("3.14", "x86_64", "musl")
    assert musl.wheels == ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64")


def test_the_supported_machines_are_described() -> None:
    assert describe(TABLE.targets, "2.28") == (
        "CPython 3.11, 3.12, 3.13 or 3.14 on 64-bit Linux, aarch64 or x86_64, with glibc 2.28 or newer or musl"
    )
    assert describe(TABLE.targets[:1], "2.28") == ("CPython 3.11 on 64-bit Linux, aarch64, with glibc 2.28 or newer")


def test_without_a_name_all_targets_are_selected_and_an_unknown_one_is_refused() -> None:
    assert TABLE.choose([]) == TABLE.targets
    with pytest.raises(UnknownTarget, match="cpython-310"):
        TABLE.choose(["cpython-310-x86_64-linux-gnu"])


def test_no_wheel_needs_a_newer_glibc() -> None:
    tags = tomllib.loads((ROOT / "firmware" / "targets.toml").read_text())["gnu"]["wheels"]
    asked = [int(found[1]) for tag in tags if (found := re.fullmatch(r"manylinux_2_(\d+)", tag))]
    assert f"2.{max(asked)}" == TABLE.oldest_glibc


def test_nothing_names_a_registry() -> None:
    for file in [*(ROOT / "firmware").rglob("*"), ROOT / "shiv.toml", ROOT / "build.py"]:
        if file.is_file() and "__pycache__" not in file.parts:
            assert not re.search(r"https?://(?!127\.0\.0\.1|spdx\.org/)|--(extra-)?index-url", file.read_text()), file
