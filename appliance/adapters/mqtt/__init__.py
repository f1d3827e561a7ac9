"""MQTT: connects the devices that announce themselves on a broker, and publishes the hub's own devices on a broker.

Read in this order: `client` (the connection), `adapter` (the work of one connection), `lifecycle` (when devices are
built and forgotten), `announcements` and `tasmota/announcements` (which convert configurations to announcements),
`announcement_store`, `announced_devices`, `grouping`, `device_ids`, and `device_builder` (from stored announcements
to devices), `platforms/` (components: keys, state, and commands), `router` (maps topics to entities),
`message_processor` (processes messages), `changed_devices` (publishes changes), `commands` (commands and their
results), `refusals` (faults and exceeded limits), `retained_messages` (the hub's own messages). `templates/` renders
announced templates within limits. `out/` publishes this hub's devices.
"""
