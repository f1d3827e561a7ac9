"""Conditions decide whether a triggered automation may run now.

Each kind reads its own fields (`parse`), compares them with the home (`look`), and lists its `names`. Read `base`,
then `device` and `time`; `combine` has `all`, `any`, and `none`, and the table of all kinds.
"""
