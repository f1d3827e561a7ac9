"""The files of the wheels that are in the single file, each with the reason."""

from __future__ import annotations

import json
import lzma
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from appliance import home_locale
from firmware import spdx
from firmware.parts import Parts, UnsupportedWheel, in_order, notice
from firmware.targets import Target
from firmware.wheels import ChecksumMismatch, Store
from tests.firmware.archive import make_archive, this_target
from tests.firmware.test_elf import made

GNU = Target(python="3.11", machine="aarch64", libc="gnu", wheels=())
MUSL = Target(python="3.12", machine="aarch64", libc="musl", wheels=())
INTEL = Target(python="3.11", machine="x86_64", libc="gnu", wheels=())
LEAN = made([(0, 4096)])


def wheel(folder: Path, name: str, **files: bytes) -> Path:
    """Return a wheel with these files. In names, `__` is a slash, and `_dot_` a dot."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for key, data in files.items():
            archive.writestr(key.replace("__", "/").replace("_dot_", "."), data)
    return path


def add(parts: Parts, target: Target, *wheels: Path) -> None:
    """Add the wheels, without headers and most metadata."""
    parts.add_wheels(target, wheels, keep=["b.dist-info/METADATA"], leave_out=["*.h", "*.dist-info/*"])


@pytest.mark.slow
def test_all_time_zones_are_in_one_file(tmp_path: Path) -> None:
    parts, before = Parts(), {name: zone_bytes(name, home_locale.TZDATA) for name in home_locale.zone_names()}
    parts.add_folder(Path(str(files("tzdata"))), "tzdata")
    parts.join_zones()
    assert parts.pure.keys() == {"tzdata/__init__.py", "tzdata/zones", "tzdata/zones.joined"}
    for name, data in parts.pure.items():
        (tmp_path / name.removeprefix("tzdata/")).write_bytes(data)
    assert {name: zone_bytes(name, tmp_path) for name in home_locale.zone_names()} == before and len(before) > 500


def zone_bytes(name: str, folder: Path) -> bytes:
    """Return the bytes that the hub reads for the zone."""
    path, start, size = home_locale.find_zone(name, folder)
    return path.read_bytes()[start : start + size]


def test_python_files_are_shared_and_objects_belong_to_a_target(tmp_path: Path) -> None:
    one = wheel(tmp_path, "a", a__x_dot_py=b"x", a__y_dot_so=LEAN + b"symbols", a__z_dot_h=b"h")
    metadata = {"b.dist-info__METADATA": b"m", "b.dist-info__RECORD": b"r", "a.dist-info__WHEEL": b"w"}
    two = wheel(tmp_path, "b", **metadata)
    parts = Parts()
    add(parts, GNU, one, two)
    add(parts, MUSL, one)
    assert parts.pure == {"a/x.py": b"x", "b.dist-info/METADATA": b"m"}
    assert parts.native == {GNU: {"a/y.so": parts.native[MUSL]["a/y.so"]}, MUSL: parts.native[MUSL]}
    assert len(parts.native[GNU]["a/y.so"]) == len(LEAN)


def test_differences_between_targets_are_refused(tmp_path: Path) -> None:
    parts = Parts()
    add(parts, GNU, wheel(tmp_path, "a", x_dot_py=b"x"))
    with pytest.raises(UnsupportedWheel, match=r"x\.py in a-1\.0-py3-none-any\.whl differs between targets"):
        add(parts, MUSL, wheel(tmp_path, "a", x_dot_py=b"y"))


def test_code_for_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedWheel, match="compiled for a different type of machine"):
        add(Parts(), INTEL, wheel(tmp_path, "a", a_dot_so=LEAN))
    with pytest.raises(UnsupportedWheel, match="not a 64-bit"):
        add(Parts(), GNU, wheel(tmp_path, "a", a_dot_so=b"#!/bin/sh"))
    with pytest.raises(UnsupportedWheel, match="does not belong in site-packages"):
        add(Parts(), GNU, wheel(tmp_path, "a", **{"a-1.data__scripts__run": b"x"}))


def test_licences_are_one_text(tmp_path: Path) -> None:
    parts = Parts()
    licences = {"b.dist-info__licenses__LICENSE": b"be kind", "a.dist-info__LICENSE": b"be"}
    add(parts, GNU, wheel(tmp_path, "a", **licences))
    text = b"--- a.dist-info/LICENSE ---\n\nbe\n\n--- b.dist-info/licenses/LICENSE ---\n\nbe kind\n\n"
    assert notice((), parts.notices).endswith(b"that the packages contain:\n\n" + text)
    assert not parts.pure


METADATA = {
    b"License-Expression: MIT AND Apache-2.0\nLicense: something else": ("MIT AND Apache-2.0", ""),
    b"License: Apache License 2.0": ("Apache-2.0", ""),
    b"License: MIT style": ("LicenseRef-A.b", "MIT style"),
    b"Classifier: License :: OSI Approved :: BSD License": ("LicenseRef-A.b", "BSD License"),
    b"Classifier: Programming Language :: Lua": ("LicenseRef-A.b", "not stated"),
}
PARTS = {
    "components": [
        {
            "name": "inner",
            "version": "3",
            "licenses": [{"expression": "MIT/Apache-2.0"}],
            "purl": "pkg:cargo/inner@3",
        },
        {"name": "bare", "version": "4", "licenses": [{"license": {"id": "MIT"}}, {"expression": "A OR B"}]},
        {"name": "mute", "version": "5"},
        {"name": "a", "version": "1"},
    ]
}


@pytest.mark.parametrize("stated", METADATA)
def test_a_licence_comes_from_the_metadata(stated: bytes) -> None:
    package = spdx.read_metadata(b"Metadata-Version: 2.4\nName: A.b\nVersion: 1\n" + stated + b"\n\nText\n")
    assert (package.licence, package.own_text) == METADATA[stated]
    assert package.purl == "pkg:pypi/a-b@1"


def test_the_spdx_document_lists_each_package_and_its_content(tmp_path: Path) -> None:
    parts = Parts()
    files = {
        "a-1.dist-info__METADATA": b"Name: a\nVersion: 1\nLicense: MIT style\n",
        "a-1.dist-info__licenses__LICENSE": b"be kind",
        "a-1.dist-info__sboms__a.cyclonedx.json": json.dumps(PARTS).encode(),
    }
    add(parts, GNU, wheel(tmp_path, "a", **files))
    document = json.loads(
        spdx.build_document("x.pyz", "00", "9.9", "2026-01-01T00:00:00Z", parts.packages, parts.notices)
    )
    licences = {each["name"]: each["licenseDeclared"] for each in document["packages"]}
    assert licences == {
        "lares": "Apache-2.0",
        "a": "LicenseRef-a",
        "inner": "MIT OR Apache-2.0",
        "bare": "MIT AND (A OR B)",
        "mute": "NOASSERTION",
    }
    assert document["hasExtractedLicensingInfos"] == [
        {"licenseId": "LicenseRef-a", "name": "MIT style", "extractedText": "be kind"}
    ]
    ids = {each["SPDXID"] for each in document["packages"]}
    inside = {each["relatedSpdxElement"]: each["spdxElementId"] for each in document["relationships"][1:]}
    assert inside.keys() | {"SPDXRef-lares"} == ids and inside["SPDXRef-a-mute-5"] == "SPDXRef-a-1"


def test_our_own_files_are_packed_without_generated_ones(tmp_path: Path) -> None:
    for name in ("a.py", "__pycache__/a.pyc", ".hidden", "data/.luarc.json", "data/prelude.lua", "a.py~"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    parts = Parts()
    parts.add_folder(tmp_path, "appliance")
    assert set(parts.pure) == {"appliance/a.py", "appliance/data/.luarc.json", "appliance/data/prelude.lua"}


def test_all_parts_of_a_target_are_consecutive() -> None:
    native = {MUSL: {"a.so": b""}, INTEL: {"a.so": b""}, GNU: {"b.so": b"", "a.so": b""}}
    found = [(target.libc, name) for target, name in in_order(native, "aarch64")]
    assert found == [("gnu", "a.so"), ("gnu", "b.so"), ("musl", "a.so")]


def test_equal_objects_are_stored_once_without_shivs_start_code(tmp_path: Path) -> None:
    file = make_archive(tmp_path / "lares.pyz")
    assert file.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    machine = this_target().machine
    with zipfile.ZipFile(file) as archive:
        parts = json.loads(archive.read("parts.json"))
        assert not [name for name in archive.namelist() if name.startswith("_bootstrap")]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        packed = lzma.decompress(archive.read(f"native/{machine}.xz"))
    paths = [names[this_target().tag] for _, _, names in parts[f"native/{machine}"] if this_target().tag in names]
    assert paths == [["fast/one.so", "fast/twin.so"], ["fast/two.so"]]
    assert packed.count(b"object one") == 500


@pytest.mark.slow
def test_equal_content_has_an_equal_name_and_other_content_another(tmp_path: Path) -> None:
    versions = (("a", b"x = 1\n"), ("b", b"x = 1\n"), ("c", b"x = 2\n"))
    files = [make_archive(tmp_path / name, version) for name, version in versions]
    names = []
    for file in files:
        with zipfile.ZipFile(file) as archive:
            names.append(archive.read("lares_file.py"))
    assert names[0] == names[1] != names[2]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_wheels_that_are_not_in_the_lock_are_not_used(tmp_path: Path) -> None:
    lock = tmp_path / "runtime.lock"
    lock.write_text("a==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n")

    def fetch(command: list[str]) -> None:
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(parents=True)
        wheel(folder, "a", a_dot_py=b"evil")

    store = Store(folder=tmp_path / "kept", run=lambda command: fetch(list(command)), say=lambda line: None)
    with pytest.raises(
        ChecksumMismatch,
        match=r"does not contain the packages of the lock \(a-1\.0-py3-none-any\.whl\)",
    ):
        store.wheels("python", lock, [GNU])
