"""Conditions decide whether a triggered automation may run now.

Each kind of condition reads its fields (`parse`), compares them with the home (`evaluate`), and lists the `names` in
them. Read `base`, then `device`, `time`, and `sun`. `combine` contains the kinds `all`, `any`, and `none`, and the
check of a whole list. `kinds` contains the table of all kinds. `explain` describes conditions for `lares why`.
"""
