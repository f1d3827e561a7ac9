"""MQTT: connects the devices that announce themselves on a broker, and publishes the hub's own devices on a broker.

Read in this order: `client` (the connection), `adapter` (the work of one connection), `lifecycle` (when devices are
built and forgotten), `discovery` and `tasmota/discovery` (which convert configurations to announcements),
`router` (which maps topics to entities), `device` and `live_devices` (an announced device and its changes),
`commands` (commands and their results), `platforms/` (components: keys, state, and commands). `templates/` renders
announced templates within limits. `out/` publishes this hub's devices.
"""
