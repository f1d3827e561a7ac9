#!/usr/bin/python3
"""A substitute for systemctl, which starts the command of the unit, and waits for READY=1."""

import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNIT = Path("/etc/systemd/system/lares.service")
PID, LOG, CALLS, NOTIFY = (Path("/run") / name for name in ("lares.pid", "lares.log", "systemctl.log", "notify"))


def setting(name: str) -> str:
    """Return the last value of a setting in the unit."""
    return [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(name + "=")][-1]


def stop() -> None:
    """Stop the process within the unit's time limit."""
    if not PID.exists():
        return
    pid = int(PID.read_text())
    PID.unlink()
    try:
        os.kill(pid, signal.SIGTERM)
        for _ in range(100 * int(setting("TimeoutStopSec"))):
            os.kill(pid, 0)
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def start() -> int:
    """Start the unit like systemd. Return 0 once the service reports that it is ready."""
    user = pwd.getpwnam(setting("User"))
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    NOTIFY.unlink(missing_ok=True)
    notify.bind(str(NOTIFY))
    NOTIFY.chmod(0o666)
    notify.settimeout(0.05)
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
        "NOTIFY_SOCKET": str(NOTIFY),
        "STATE_DIRECTORY": "/var/lib/" + setting("StateDirectory"),
        "CONFIGURATION_DIRECTORY": "/etc/" + setting("ConfigurationDirectory"),
        "WATCHDOG_USEC": setting("WatchdogSec") + "000000",
    }
    with LOG.open("wb") as log:
        hub = subprocess.Popen(
            setting("ExecStart").split(),
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            env=environment,
            cwd="/",
            umask=int(setting("UMask"), 8),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    PID.write_text(str(hub.pid))
    while hub.poll() is None:
        try:
            if notify.recv(4096) == b"READY=1":
                return 0
        except TimeoutError:
            continue
    return 1


with CALLS.open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
if sys.argv[1] == "restart" or "--now" in sys.argv:
    stop()
if sys.argv[1] == "restart":
    sys.exit(start())
