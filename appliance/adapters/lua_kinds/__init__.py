"""Kinds of adapter in Lua files, and the bundled ones.

Read `kind` (a file), `section` (its configuration), and `host` (its worker); then `adapter`, which calls `functions`
and publishes the devices that `reader` finds in their results. `calls` are the requests of a running function to the
hub: `web_request`, `connection`, `kept_texts`, `libraries`. `redaction` hides secrets; `recorder` records a
section for `lares try-adapter`.
"""
