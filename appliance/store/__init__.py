"""The state of the hub that survives a power cut: one document in a snapshot and a journal.

Read `record_keys` and `records`, then `document`, `files`, `file_format`, and `recovery`, then `recorder` and
`store`.
"""
