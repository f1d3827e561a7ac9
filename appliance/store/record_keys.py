"""All keys of the document. `docs/store.md` describes the keys' values."""

from __future__ import annotations

ROOM_PREFIX, GROUP_PREFIX, ASSIGNMENT_PREFIX = "room/", "group/", "place/"
NAME_PREFIX, ALIAS_PREFIX, DEVICE_PREFIX, STATE_PREFIX = "name/", "alias/", "device/", "state/"

TOGGLE_PREFIX = "toggle/"
"""`toggle/<automation id>`: true or false if a person switched the automation on or off."""

AUTOMATION_PREFIX = "automation/"
"""`automation/<id>`: the state of the automation except its switch."""

TIMER_PREFIX = "timer/"
"""`timer/<name>`: the `StoredTimer` of `automations/timers.py`."""

VARIABLE_PREFIX = "variable/"
"""`variable/<name>`: the `StoredVariable` of `automations/variables.py`."""

CHANGED_PREFIX = "changed/"
"""`changed/<device id>`: the time since which each comparison of a condition has held."""

SENT_PREFIX = "sent/"
"""`sent/<device id>`: the `PastNames` of `automations/names.py`."""

REMOVED_PREFIX = "removed/"
"""`removed/<device id>`: the `RemovedDevice` of `automations/names.py`."""

ADAPTER_PREFIX = "adapter/"
"""`adapter/<section>/<key>`: a text that an adapter stores."""

CLIENT_ID_SUFFIX = "/client_id"
"""Suffix of the key with an adapter's client id, which identifies this data directory to a broker."""

KEPT_SUFFIX = "/kept"
"""Suffix of the key with a Lua section's secrets, which are one JSON object."""

KEY_PREFIX = "key/"

MASTER_KEY = KEY_PREFIX + "master"
"""The hash of the master key that the box created; a restore does not change it."""

PREFERENCES_PREFIX = "preferences/"
"""`preferences/<key id>`: the data of clients with this API key, visible only to them."""

CRASHES = "counter/crashes"
"""The times of recent crashes, in seconds since the machine started: `{boot, crashes}`; a restore does not change
them."""

RUNNING = "counter/running"
"""The executions in progress, by id: `{kind, of, at}`; empty after an orderly stop."""

CARD = "counter/card"
"""The `CardCounts` of all runs."""

VERSION_KEY = "files/version_key"
"""The secret key of the hashes that identify versions of files, so that the hashes reveal no secrets."""

CLOCK = "clock/trust"
"""`{at, until}` in milliseconds since 1970: stored times after `at`, up to `until`, came from a wrong clock."""
