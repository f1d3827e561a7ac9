"""The hub's persistent state, which survives power cuts: a document in two files, a snapshot and a journal.

Read `record_keys` and `records`, then `document`, `overlay`, `files`, `journal`, `file_format`, and `recovery`, then
`changed_devices`, `recorder`, and `store`. All files are written through `disk`. `month_files` contains the history,
and `saved_files` the earlier versions of edited files.
"""
