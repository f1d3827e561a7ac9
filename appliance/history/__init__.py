"""Past values of devices, commands, and executions: in memory within limits, and summarised on the card.

Read `series`, `device_history`, `packed_records`, `execution_history`, and `command_audit` for the memory; then
`hours`, `collector`, `card_lines`, `day_budget`, `card_writer`, `writing_index`, `newest_rows`, and `card_history`
for the card. `attribute_reader` combines memory and card. `home_history` owns all parts, and `influx_export` exports
values.
"""
