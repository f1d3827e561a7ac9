"""Asking the hub that runs on this box, over the socket in its data directory."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any

from appliance.cli import key_socket
from appliance.cli.paths import Places
from appliance.errors import StartFailed


def ask_hub(arguments: argparse.Namespace, request: dict[str, Any]) -> dict[str, Any]:
    """What the hub answers; `StartFailed` where none runs, or where it says that it cannot do what was asked."""
    folder = Places.of_process(arguments.config, arguments.data_dir).find_data_dir()
    try:
        reply = asyncio.run(key_socket.ask(folder, request))
    except PermissionError:
        raise StartFailed(f"the hub of {folder} answers only its own user and root", os.EX_NOPERM) from None
    except OSError:
        raise StartFailed(f"no hub answers on {folder}; `lares run` starts one", os.EX_UNAVAILABLE) from None
    if "error" in reply:
        raise StartFailed(reply["error"], reply["code"])
    return reply
