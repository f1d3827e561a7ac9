"""Conditions, as values: whether an automation can run now.

A kind reads its own fields (`parse`), compares them with the home (`look`), and lists its `names`. Read
`base`, then `device` and `time`; `combine` has `all`, `any`, and `none`, and the table of all kinds.
"""
