"""What a running hub is asked on its socket beside what concerns keys."""

from __future__ import annotations

from appliance.automations.home_view import CHANGED
from appliance.automations.states import AUTOMATION, TOGGLE
from appliance.automations.timers import TIMER
from appliance.automations.variables import VARIABLE
from appliance.store.records import DEVICE, GROUP, PLACE, ROOM
from appliance.store.records import STATE as STATE_OF_DEVICE

TRUST = "trust-clock"
"""To trust its clock."""

LUA = "lua"
"""For the figures of its Lua workers."""

STATE = "state"
"""For what a simulation needs of the home's state."""

SIMULATED = (ROOM, GROUP, PLACE, DEVICE, STATE_OF_DEVICE, TOGGLE, AUTOMATION, VARIABLE, TIMER, CHANGED)
"""What that is, by the prefixes of the keys in the document."""
