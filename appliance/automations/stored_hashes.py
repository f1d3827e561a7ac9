"""The hashes that are keys in the stored state of an automation (`AutomationState`). A change of a hash makes stored
data unreadable.

- `waits`: `key_of` of the trigger.
- `fired`: `schedule_key_of` of the trigger.
- `policy.decided`: `fingerprint` of the event.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from appliance.automations.stated_fields import state_fields
from appliance.automations.triggers.base import TimedTrigger, Trigger
from appliance.automations.triggers.device import DeviceTrigger
from appliance.clock import EPOCH
from appliance.home.values import Value


def key_of(trigger: Trigger) -> str:
    """Return a key that is equal for triggers with the same meaning, even after a reload or restart."""
    stated = state_fields(trigger)
    if isinstance(trigger, DeviceTrigger) and trigger.devices.ids:
        stated["device_id"] = sorted(trigger.devices.ids)
    return hash_text(json.dumps(_plain(stated), sort_keys=True))


def schedule_key_of(trigger: TimedTrigger) -> str:
    """Return the key of the schedule's last time. Triggers with the same event have the same key."""
    return fingerprint(trigger.event_at(EPOCH))


def fingerprint(event: Mapping[str, Value]) -> str:
    """Return a hash of the event without `scheduled_at`. `5` and `5.0` have the same hash; `true` and `1` have
    different hashes."""
    fields = {key: _plain(value) for key, value in event.items() if key != "scheduled_at"}
    return hash_text(json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False), n_bytes=12)


def hash_text(text: str, n_bytes: int = 8) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=n_bytes).hexdigest()


def _plain(value: Value) -> Value:
    """Convert floats without a fraction to integers, at every depth."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
