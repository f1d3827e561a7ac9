"""The hub's persistent state, which survives power cuts: a document in two files, a snapshot and a journal.

Read `record_keys`, `storage`, and `records`, then `document`, `overlay`, `store_thread`, `document_files`, `journal`,
`file_format`, and `recovery`, then `layout_changes`, `changed_devices`, `clock_trust`, `card_counts`, and `recorder`,
then `stored_keys`, `adapter_secrets`, `crashes`, `lock`, and `restore`. `store` opens all parts. All files are
written through `disk`. `month_files` contains the history, and `saved_files` the earlier versions of edited files.
"""
