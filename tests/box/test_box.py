"""A whole box. The box is installed, used for an evening, upgraded, and rolled back, and its power is cut fifty
times.

`python3 build.py test -m box -n 0` runs this test, in about an hour if the emulator has two cores. `BOX_PULLS` sets
the number of power cuts, and `BOX_SEED` repeats a run. The image and the installed box are kept between runs.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import home
from benchmarks._client import KEY
from benchmarks._processes import peer
from tests.adapters.mqtt.broker import OwnBroker, running
from tests.box.emulator import Emulator, make_overlay
from tests.box.home import CONFIG, DEVICES, put_automations
from tests.box.image import Image, debian_image
from tests.box.model import LAMP, Model
from tests.firmware.conftest import ROOT, build, clone

pytestmark = [pytest.mark.slow, pytest.mark.box]

PULLS = int(os.environ.get("BOX_PULLS", "50"))
SEED = int(os.environ.get("BOX_SEED", "0")) or random.randrange(1, 1 << 32)
IN_START = 0.15
"""Share of the power cuts that happen while the box starts."""

PATIENCE = "[Service]\nTimeoutStartSec=900\nWatchdogSec=600\n"
"""Longer timeouts, because an emulator on a shared machine is slower than any real box."""

HOST = "10.0.2.2"
"""The address at which the box reaches the loopback address of this machine."""

UNIT = "/sys/fs/cgroup/system.slice/lares.service"

FULL_CHECK_EVERY = 10
"""Number of cuts after which the whole file system is checked."""


def say(*words: object) -> None:
    """Print a line with the time, for people who watch the test."""
    print(f"{time.strftime('%H:%M:%S')}", *words, flush=True)


@pytest.fixture(scope="module")
def image(request: pytest.FixtureRequest) -> Image:
    """Provide a newly installed Debian. Skip without `-m box`."""
    if request.config.option.markexpr != "box":
        pytest.skip("emulates a whole box for an hour; `build.py test -m box` runs it")
    return debian_image()


@contextmanager
def powered(image: Image, disk: Path) -> Iterator[Emulator]:
    """Run a box with this disk. Yield once the hub or ssh answers, and switch the box off at the end."""
    box = Emulator(image=image, disk=disk, log=disk.with_suffix(".console"))
    try:
        box.power_on()
        yield box
    finally:
        box.kill()


@pytest.fixture(scope="module")
def installed(image: Image, single_file: Path) -> Path:
    """Provide the disk of a box on which Lares was set up as documented and used for an evening. The disk is kept
    while lares.pyz does not change."""
    digest = single_file.with_name(f"{single_file.name}.sha256").read_text()[:16]
    disk = image.disk.with_name(f"installed-{digest}.qcow2")
    if not disk.exists():
        part = make_overlay(image.disk, disk.with_suffix(".part"))
        with powered(image, part) as box:
            spend_first_evening(box, single_file)
            box.power_off()
        part.rename(disk)
    return disk


def spend_first_evening(box: Emulator, single_file: Path) -> None:
    """Install the file, and create a key, a room, devices, automations, and a scene, on the box and over HTTP."""
    began = time.monotonic()
    box.wait_for_ssh()
    say(f"ssh after {time.monotonic() - began:.0f} s; {box.run('uname -srm').strip()}")
    box.copy(single_file, "lares.pyz")
    box.copy(ROOT / "firmware" / "install.sh", "install.sh")
    box.run("mkdir -p /etc/systemd/system/lares.service.d")
    box.run("cat >/etc/systemd/system/lares.service.d/patience.conf", text=PATIENCE)
    began = time.monotonic()
    say(f"{box.run('sh install.sh').strip()} ({time.monotonic() - began:.0f} s)")
    assert box.run("systemctl is-active lares").strip() == "active"
    box.key = box.run("cat /var/lib/lares/first-key").strip()
    assert box.demand("GET", "/devices") == []
    make_key = "lares key create --label evening --role admin | tee /root/key"
    box.key = box.run(make_key).strip()
    config = box.run(f"cat {CONFIG}/default.toml")
    box.run(f"cat >{CONFIG}/default.toml", text=config.split("[adapters.virtual]")[0] + DEVICES)
    assert "no faults" in box.run("lares check")
    box.run("systemctl restart lares")
    box.wait_for_hub()
    put_automations(box)
    box.demand("POST", "/rooms", {"id": "hall", "name": "Hall"})
    box.demand("POST", f"/devices/{LAMP}/room", {"room_id": "hall"})
    observed = {"device_id": "virtual:motion", "attributes": {"motion": "detected"}}
    box.demand("POST", "/adapters/virtual/operations/observe", observed)
    shows(box, "on")
    box.demand("POST", "/scenes/night/execute")
    shows(box, "off")
    assert "ran (device_state_change)" in box.run("lares why hall_light")


def shows(box: Emulator, power: str) -> None:
    """Wait until the lamp reports this power."""
    deadline = time.monotonic() + 60
    while box.demand("GET", f"/devices/{LAMP}")["attributes"]["power"] != power:
        assert time.monotonic() < deadline, power
        time.sleep(0.5)


@contextmanager
def evening(image: Image, installed: Path, tmp_path: Path) -> Iterator[Emulator]:
    """Provide a box with a copy of the disk after the evening."""
    with powered(image, make_overlay(installed, tmp_path / "disk.qcow2")) as box:
        box.wait_for_ssh()
        box.key = box.run("cat /root/key").strip()
        yield box


def test_lua_is_confined_and_a_start_is_measured(image: Image, installed: Path, tmp_path: Path) -> None:
    with evening(image, installed, tmp_path) as box:
        box.wait_for_hub()
        doctor = box.run("lares doctor || true")
        say(doctor)
        assert not [line for line in doctor.splitlines() if line.startswith("care") and "clock" not in line]
        pids = box.run(f"cat {UNIT}/cgroup.procs").split()
        read = "sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/{}/status"
        filters = [int(box.run(read.format(pid))) for pid in pids]
        say("filters of system calls:", filters)
        assert len(pids) == 2, "the hub and its Lua worker"
        assert filters[1] == filters[0] + 1, "the worker has a filter beyond the unit's"
        for pid in pids:
            say(pid, box.run(f"tr '\\0' ' ' </proc/{pid}/cmdline; grep -E '^(Rss|Pss):' /proc/{pid}/smaps_rollup"))
        box.run("systemctl restart lares")
        say(f"restart: ready after {start_secs(box):.1f} s")
        say(box.run("journalctl -b -u lares -o short-monotonic --no-pager | tail -20"))
        say(box.run("systemd-analyze; systemd-analyze blame | head -8"))


def test_an_upgrade_and_a_rollback_keep_the_home(
    image: Image, installed: Path, tmp_path: Path, single_file: Path
) -> None:
    second = clone(tmp_path / "second")
    version = second / "appliance" / "version.py"
    text = version.read_text()
    version.write_text(text.replace('VERSION = "', 'VERSION = "9.'))
    build(second, "pyz", "--target", "cpython-313-aarch64-linux-gnu")
    with evening(image, installed, tmp_path) as box:
        box.copy(second / "dist" / "lares-cpython-313-aarch64-linux-gnu.pyz", "second.pyz")
        old = box.run("lares --version").splitlines()[0]
        assert "is installed" in box.run("sh install.sh second.pyz")
        say(f"first start after the upgrade: ready after {start_secs(box):.1f} s")
        assert box.run("lares --version").startswith("lares 9.")
        is_whole(box)
        assert "is installed again" in box.run("sh install.sh rollback")
        assert box.run("lares --version").splitlines()[0] == old
        is_whole(box)


def start_secs(box: Emulator) -> float:
    """Return the seconds from the start of the hub's process until systemd was notified that it is ready."""
    names = ("ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    began, ready = (int(box.run(f"systemctl show lares --value -p {name}")) for name in names)
    return (ready - began) / 1e6


def is_whole(box: Emulator) -> None:
    """Check that the home of the evening is complete and works."""
    box.wait_for_hub()
    assert {"hall"} <= {room["id"] for room in box.demand("GET", "/rooms")}
    assert box.demand("GET", f"/devices/{LAMP}")["room_id"] == "hall"
    assert {"hall_light", "timer_over"} <= {each["id"] for each in box.demand("GET", "/automations")}
    box.demand("POST", "/scenes/night/execute")


class BoxHome:
    """The hub and the worker of a box, measured like the hub of the benchmark."""

    def __init__(self, box: Emulator) -> None:
        self._box = box
        self.port = box.hub_port

    def pss_mb(self) -> float:
        return self._sum("smaps_rollup", "Pss") * 1024 / 1e6

    def cpu_secs(self) -> float:
        return int(self._box.run(f"sed -n 's/^usage_usec //p' {UNIT}/cpu.stat")) / 1e6

    def written_mb(self) -> float:
        return self._sum("io", "write_bytes") / 1e6

    def _sum(self, file: str, name: str) -> int:
        read = f"sed -n 's/^{name}:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$pid/{file}"
        return sum(map(int, self._box.run(f"for pid in $(cat {UNIT}/cgroup.procs); do {read}; done").split()))


def test_the_home_of_the_benchmark_fits_a_box(image: Image, installed: Path, tmp_path: Path) -> None:
    """`HOME_MINUTES` sets the duration. Only the memory has a limit, because the emulator is slow."""

    async def live_in(box: Emulator, lamp_ports: Sequence[int]) -> float:
        async with running(OwnBroker(tmp_path)) as broker:
            config = home.config(broker, lamp_ports).replace("127.0.0.1", HOST)
            box.run(f"cat >{CONFIG}/default.toml", text=f'[api]\nbind_address = "0.0.0.0:3000"\n{config}')
            for file, text in home.automations().items():
                box.run(f"cat >{CONFIG}/automations/{file}", text=text)
            drop_in = f"[Service]\nEnvironment=LARES_MASTER_KEY={KEY}\n"
            box.run("cat >/etc/systemd/system/lares.service.d/key.conf", text=drop_in)
            box.run("systemctl daemon-reload && systemctl restart lares")
            memory, *others = await home.live(BoxHome(box), broker)
            for row, value, *_ in (memory, *others):
                say(f"{row.label}: {value:.3g} {row.unit}")
            return memory[1]

    with peer("lamps", str(home.LAMPS), "1") as lamp_ports, evening(image, installed, tmp_path) as box:
        assert asyncio.run(live_in(box, lamp_ports)) <= 60


def test_the_home_survives_power_cuts(image: Image, installed: Path, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    say(f"seed {SEED}, {PULLS} cuts")
    with evening(image, installed, tmp_path) as box:
        box.wait_for_hub()
        model = Model(box, chance)
        starts = [pull_once(box, model, chance, number) for number in range(1, PULLS + 1)]
        model.settle_timers()
        model.recount()
        box.wait_for_ssh()
        assert "EXT4-fs error" not in box.run("dmesg")
        say(box.run("lares doctor || true"))
        box.power_off()
        is_sound(box.disk, tmp_path)
        say(f"{PULLS} cuts; acknowledged {dict(model.acknowledged)}, cut off {dict(model.cut_off)}, none missing")
        say(f"{len(model.runs)} timers: {dict(model.outcomes)}")
        say(f"power to ready: median {sorted(starts)[PULLS // 2]:.0f} s, most {max(starts):.0f} s")


def pull_once(box: Emulator, model: Model, chance: random.Random, number: int) -> float:
    """Change the home, cut the power, start again, and compare. Return the seconds of the last start."""
    stop = threading.Event()
    threads = model.change_until(stop)
    time.sleep(chance.uniform(2, 25))
    box.pull_plug()
    model.note_cut()
    stop.set()
    for thread in threads:
        thread.join()
    if number % FULL_CHECK_EVERY == 0:
        is_sound(box.disk, box.disk.parent)
    if chance.random() < IN_START:
        box.power_on()
        time.sleep(chance.uniform(10, 60))
        box.pull_plug()
        model.note_cut()
        say(f"{number}: cut in its start")
    began = time.monotonic()
    box.power_on()
    box.wait_for_hub()
    took = time.monotonic() - began
    model.note_start()
    model.compare()
    acknowledged, cut_off = model.acknowledged.total(), model.cut_off.total()
    say(f"{number}: ready after {took:.0f} s; {acknowledged} acknowledged, {cut_off} cut off in all")
    return took


def is_sound(disk: Path, folder: Path) -> None:
    """Check that the file system is intact after a replay of its journal, as at each start."""
    raw = folder / "raw"
    subprocess.run(["qemu-img", "convert", "-O", "raw", disk, raw], check=True)
    found = subprocess.run(["e2fsck", "-f", "-p", raw], capture_output=True, text=True)
    raw.unlink()
    say(found.stdout.strip())
    assert found.returncode in (0, 1), found.stdout
