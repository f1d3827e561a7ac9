"""The time limit for devices that report the result of a command without a request, as in Matter and MQTT."""

from __future__ import annotations

from appliance.home.commands import Command

RESULT_SECS = 5.0
"""Time limit for a device that reports its state without a request."""


def is_long_fade(command: Command) -> bool:
    """Return whether the command's fade may end after `RESULT_SECS`. If so, a missing result is not an error."""
    return (command.transition_secs or 0) >= RESULT_SECS - 1
