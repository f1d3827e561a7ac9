"""Past values of devices, commands, and executions: in memory within limits, and in shorter form on the card.

Read `series`, `device_history`, `execution_history`, and `command_audit`, which are in memory; then `hours`,
`collector`, `card_lines`, `day_budget`, `card_writer`, `writing_index`, and `card_history`, which are for the card.
`attribute_reader` combines memory and card. `home_history` contains all parts, and `influx_export` exports.
"""
