"""All keys of the document. `docs/store.md` describes the values of the keys."""

from __future__ import annotations

ROOM_PREFIX, GROUP_PREFIX, ASSIGNMENT_PREFIX = "room/", "group/", "place/"
NAME_PREFIX, ALIAS_PREFIX, DEVICE_PREFIX, STATE_PREFIX = "name/", "alias/", "device/", "state/"

TOGGLE_PREFIX = "toggle/"
"""`toggle/<automation id>`: true if a person enabled the automation, false if a person disabled the automation."""

AUTOMATION_PREFIX = "automation/"
"""`automation/<id>`: the automation's state. The switch is stored separately as `toggle/<id>`."""

WAIT_PREFIX = "wait/"
"""`wait/<device id><tab><automation id>`: the automation's running waits for the device, by the trigger's key."""

TIMER_PREFIX = "timer/"
"""`timer/<name>`: the `StoredTimer` of `automations/timers.py`."""

VARIABLE_PREFIX = "variable/"
"""`variable/<name>`: the `StoredVariable` of `automations/variables.py`."""

CHANGED_PREFIX = "changed/"
"""`changed/<device id>`: the time at which each comparison in a condition began to hold."""

SENT_PREFIX = "sent/"
"""`sent/<device id>`: the `PastNames` of `automations/names/home_names.py`."""

REMOVED_PREFIX = "removed/"
"""`removed/<device id>`: the `RemovedDevice` of `automations/names/home_names.py`."""

HOME_STATE_PREFIXES = (
    ROOM_PREFIX,
    GROUP_PREFIX,
    ASSIGNMENT_PREFIX,
    NAME_PREFIX,
    ALIAS_PREFIX,
    DEVICE_PREFIX,
    STATE_PREFIX,
    TOGGLE_PREFIX,
    AUTOMATION_PREFIX,
    WAIT_PREFIX,
    VARIABLE_PREFIX,
    TIMER_PREFIX,
    CHANGED_PREFIX,
    SENT_PREFIX,
    REMOVED_PREFIX,
)
"""The prefixes of the keys with the state of the home. `GET /diagnostics/state` returns the values of these keys, and
a simulation starts with them."""

ADAPTER_PREFIX = "adapter/"
"""`adapter/<section>/<key>`: a string that an adapter stores."""

CLIENT_ID_SUFFIX = "/client_id"
"""The suffix of the key with an adapter's MQTT client id. The client id is unique to this data directory."""

LUA_SECRETS_SUFFIX = "/kept"
"""The suffix of the key with a Lua section's secrets as one JSON object."""

KEY_PREFIX = "key/"

MASTER_KEY = KEY_PREFIX + "master"
"""The hash of the master key that the hub created. A restore preserves this key."""

PREFERENCES_PREFIX = "preferences/"
"""`preferences/<key id>`: data of clients with this API key. Clients with other API keys cannot read the data."""

CRASHES = "counter/crashes"
"""The times of recent crashes, in seconds since the machine booted: `{boot, crashes}`. A restore preserves this
key."""

RUNNING = "counter/running"
"""The running executions by id: `{kind, of, at}`. After a clean stop, the mapping is empty."""

DOUBTFUL = "counter/doubtful"
"""The attributes by device id whose stored values were doubtful at the last stop."""

CARD = "counter/card"
"""The `CardCounts` of all runs."""

VERSION_KEY = "files/version_key"
"""The secret key for the hashes that identify file versions. Because the key is secret, the hashes reveal nothing
about the files."""

CLOCK = "clock/trust"
"""`{at, until}` in milliseconds since 1970: stored times after `at` and up to `until` came from a wrong clock."""
