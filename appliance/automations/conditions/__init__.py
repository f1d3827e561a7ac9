"""Conditions decide whether a triggered automation may run now.

Each kind of condition reads its fields (`parse`), compares them with the home (`look`), and lists the `names` in
them. Read `base`, then `device` and `time`. `combine` contains the kinds `all`, `any`, and `none`, and the table of
all kinds.
"""
