"""MQTT: connects the devices that announce themselves on a broker, and publishes the hub's own devices on a broker.

Read in this order: `broker` and `broker_reconnection` (the connection), `adapter` (connects, and sends commands),
`message_loop` (connects the parts of one broker, and reads the inbox), `announcements/` (from announcements to
devices), `device`, `component_classes` and `platforms/` (components: keys, state, and commands) with `fields`,
`router` (maps topics to entities), `topic_filters`, `subscriptions`, `message_processor` (processes messages, with
`deadlines`, `newest_messages`, `hub_states`, `restored_states`, `presses`, and `picture_store`), `changed_devices`
(publishes changes), `commands` and `pending_command` (commands and their results), `refusals` and `reports` (faults
and exceeded limits), `retained_messages` (the hub's own messages), and `stored_texts` (texts kept across restarts).
`templates/` renders announced templates within limits. `out/` publishes this hub's devices.
`home_assistant_classes` maps Home Assistant's classes of entities to capabilities; the import also uses this table.

A message takes this path: 1. `aiomqtt_client` reads it from the socket, and calls `Inbox.put`. 2.
`MessageLoop.keep_reading` takes messages from the inbox, and processes them in steps. `Budget` parks a message that
takes too much processor time. 3. `Discovery.process` stores a configuration. `MessageProcessor.process` converts any
other message: it publishes events at once, and passes changed attributes to `ChangedDevices.note`. 4. After each
batch, `keep_reading` calls `ChangedDevices.flush`. 5. `ChangedDevices` publishes each changed device with a
`Publisher`, which passes the values to the registry.

A command takes this path: 1. `MqttAdapter.command` calls `Commands.run`. 2. `Entity.write` converts the command to an
`Intent`: the messages, and the values that confirm the command. 3. `Commands.run` publishes the messages. 4. The
device's answers take the path of a message. `MessageProcessor` passes the values of the entity to its
`PendingCommand`, which holds back contradicting values, and ends when the result arrives. 5. `Commands._await_result`
waits for this end, and raises an error if the device does not report the result in time.

One object changes each state: `AnnouncedDevices.rebuild` the devices and the router, `AnnouncementStore` the
configurations, `MessageProcessor` the values of the entities, `Commands` the pending commands, and
`Subscriptions.keep` the subscriptions. At a new connection, `MessageLoop` empties `Inbox`, `Budget`, and
`RetainedMessages`, and `Discovery` begins again with empty `Subscriptions`. All other parts keep their state.
"""
