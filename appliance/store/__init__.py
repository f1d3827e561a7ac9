"""The hub's persistent state, which survives power cuts: a document in two files, a snapshot and a journal.

Read in this order:

- `record_keys` lists the keys of the document, `records` encodes devices and the layout, and `storage` describes the
  document for other packages.
- `document` has one queue for all changes. `overlay` holds values that a later flush writes.
- `store_thread` does all work on the files of `document_files`: a snapshot, and a `journal` of later changes.
  `file_format` encodes both files. `recovery` reads them at the start.
- `layout_changes` stores changes of rooms and names. `recorder` writes devices later, as `changed_devices` decides.
- `clock_trust` decides whether the clock is trusted. `card_counts` counts the bytes written to the card.
- `stored_keys` contains the API keys, and `adapter_secrets` the secrets of adapters.
- `lock` lets only one hub use the folder, and `crashes` counts crashes. `restore` replaces the document while no hub
  runs.
- `month_files` contains the history, and `saved_files` the earlier versions of edited files.
- `store` opens all parts, and `disk` writes all files.
"""
