"""An arm64 box in `qemu-system-aarch64`. Tests start the box, use it over ssh and HTTP, and cut its power."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.box.image import Image
from tests.fakes.process import free_port

CORES = min(2, os.cpu_count() or 1)
MEMORY_MB = 1024
PROCESSOR = "cortex-a53"
"""The processor of a Raspberry Pi 3. Newer Debian versions are ten times slower on qemu's default processor."""

CARD = {"iops-read": 1500, "iops-write": 500, "bps-read": 20 << 20, "bps-write": 10 << 20}
"""The speed of a slow SD card of class A1: operations per second, and bytes per second."""

KERNEL_LINE = (
    "root=/dev/vda rw console=ttyAMA0 quiet mitigations=off lsm=landlock,yama audit=0 "
    "systemd.default_timeout_start_sec=900 systemd.default_device_timeout_sec=900"
)
"""Long timeouts, because an emulator on a shared machine is slower than any real box."""

BOOT_SECS = 900.0
HTTP_TIMEOUT_SECS = 60.0


class NoAnswer(Exception):
    """Raised if a request was not answered completely, so that its effect is unknown."""


def make_overlay(image: Path, file: Path) -> Path:
    """Create a disk with the content of the image. All writes go to this new file."""
    kind = "qcow2" if image.suffix == ".qcow2" else "raw"
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(image), "-F", kind, str(file)]
    subprocess.run(create, check=True)
    return file


def cache_mode(folder: Path) -> str:
    """Return the disk's cache mode. If the folder's file system supports the mode `none`, use it, because it bypasses
    this machine's cache."""
    probe = folder / "direct"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o600))
    except OSError:
        return "writethrough"
    finally:
        probe.unlink(missing_ok=True)
    return "none"


@dataclass(kw_only=True)
class Emulator:
    """One box: its disk, and the loopback ports of its ssh and its hub."""

    image: Image
    disk: Path
    log: Path
    ssh_port: int = field(default_factory=free_port)
    hub_port: int = field(default_factory=free_port)
    key: str = ""
    _process: subprocess.Popen[bytes] | None = None

    def power_on(self) -> None:
        """Start the box without waiting for it."""
        assert self._process is None
        self._process = subprocess.Popen([str(each) for each in self._command()], stdin=subprocess.DEVNULL)

    def _command(self) -> list[str | Path]:
        throttle = "".join(f",throttling.{name}={value}" for name, value in CARD.items())
        cache = cache_mode(self.disk.parent)
        forwards = f"hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22,hostfwd=tcp:127.0.0.1:{self.hub_port}-:3000"
        return [
            *("qemu-system-aarch64", "-M", "virt", "-cpu", PROCESSOR, "-accel", "tcg,thread=multi,tb-size=512"),
            *("-smp", str(CORES), "-m", str(MEMORY_MB), "-display", "none", "-monitor", "none", "-no-reboot"),
            *("-serial", f"file:{self.log}", "-kernel", self.image.kernel, "-initrd", self.image.initrd),
            *("-append", KERNEL_LINE),
            *("-drive", f"file={self.disk},if=none,id=card,cache={cache}{throttle}"),
            *("-device", "virtio-blk-pci,drive=card", "-device", "virtio-rng-pci"),
            *("-netdev", f"user,id=net,{forwards}", "-device", "virtio-net-pci,netdev=net,romfile="),
        ]

    def pull_plug(self) -> None:
        """Kill the emulator. Data that the guest system has not synced is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def power_off(self) -> None:
        assert self._process is not None
        with suppress(AssertionError):
            self.run("systemctl poweroff")
        self._process.wait(BOOT_SECS)
        self._process = None

    def kill(self) -> None:
        """End the emulator in any state."""
        if self._process is not None:
            self.pull_plug()

    def run(self, command: str, *, text: str = "", within: float = BOOT_SECS) -> str:
        """Run a command as root, and return its output. If the command fails, fail with its whole output."""
        done = subprocess.run([*self._ssh(), command], input=text, capture_output=True, text=True, timeout=within)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def copy(self, file: Path, target: str) -> None:
        with file.open("rb") as stream:
            subprocess.run([*self._ssh(), f"cat >{target}"], stdin=stream, check=True, timeout=BOOT_SECS)

    def _ssh(self) -> list[str | Path]:
        """Return the ssh command line, without the remote command. All commands share one connection, because
        opening a connection takes the box several seconds."""
        options = (
            f"ControlPath={tempfile.gettempdir()}/box-{self.ssh_port}",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=60",
        )
        named = [word for option in options for word in ("-o", option)]
        return ["ssh", "-i", self.image.key, "-p", str(self.ssh_port), *named, "root@127.0.0.1"]

    def wait_for_ssh(self) -> None:
        quiet = subprocess.DEVNULL
        connect = [*self._ssh(), "-M", "-f", "-N"]
        self._until(lambda: subprocess.run(connect, stdin=quiet, stdout=quiet, stderr=quiet).returncode == 0)

    def wait_for_hub(self) -> None:
        def is_ready() -> bool:
            with suppress(NoAnswer):
                return self.ask("GET", "/ready")[0] == 200
            return False

        self._until(is_ready)

    def _until(self, holds: Any) -> None:
        deadline = time.monotonic() + BOOT_SECS
        while not holds():
            assert self._process is not None and self._process.poll() is None, self.log.read_text(errors="replace")[
                -3000:
            ]
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")[-3000:]
            time.sleep(0.3)

    def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> tuple[int, Any]:
        """Send a request to the hub, and return status and body. Raise `NoAnswer` if there is no complete
        response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.hub_port, timeout=HTTP_TIMEOUT_SECS)
        headers = {"Authorization": f"Bearer {self.key if key is None else key}"}
        with closing(connection):
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                response = connection.getresponse()
                return response.status, json.loads(response.read() or b"null")
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise NoAnswer(str(error)) from None

    def demand(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed, and return the body."""
        status, answer = self.ask(method, path, body)
        assert 200 <= status < 300, (method, path, body, status, answer)
        return answer
