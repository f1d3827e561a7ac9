"""History: past values of devices, commands, and executions, in memory within limits, and in shorter form on the
card.

Read `series`, `device_history`, and `execution_history`, which are in memory; then `hours`, `collector`,
`card_lines`, `card_writer`, `writing_index`, and `card_history`, which are for the card. `home_history` reads both,
and `line_writer` exports.
"""
