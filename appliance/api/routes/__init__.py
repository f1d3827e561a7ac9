"""The routes and the handlers of their requests, in one file per subject.

Most files have the name of the first segment of their paths; `places` has rooms and groups, `keys` has `/auth`.
"""
