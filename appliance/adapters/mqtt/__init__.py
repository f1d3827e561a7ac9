"""MQTT: devices that announce themselves on a broker, and this hub's own devices there.

Read in this order: `client` (connects to a broker), `adapter` (what one connection does), `announcements` and
`tasmota/discovery` (configurations become announcements), `router` (topics lead to entities), `device` and
`live_devices` (an announced device, its changes and commands), `platforms/` (one file for each component: its keys,
state, commands, and what this hub announces of it). `templates/` renders announced templates within bounds, `out/`
publishes this hub.
"""
