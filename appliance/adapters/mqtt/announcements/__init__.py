"""From announcements at a broker to devices.

Read in this order: `announcement` (one entity, in the form that all protocols share), `home_assistant_announcements`
(converts configurations to announcements, with `abbreviations`; `tasmota/announcements` does the same for Tasmota),
`announcement_store` (the newest configuration at each topic), `grouping` (announcements of one device), `device_ids`,
`device_builder`, `device_places` (the limit including parts), `announced_devices` (rebuilds the devices if their
announcements change), and `discovery` (when devices are built and forgotten).
"""
