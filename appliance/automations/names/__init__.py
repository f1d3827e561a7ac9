"""Warns about unknown names and wrong literals in files.

Read `named_things` and `given_names`, which find the names in files, then `home_names`, which compares them with the
names in the home. `name_collector` collects the names in a running hub, and `name_watcher` checks them again after
changes. `call_checks` checks the literals in calls of `ctx`.
"""
