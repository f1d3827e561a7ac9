"""Imports a Home Assistant folder: areas, names, helpers, and automations, scripts, and scenes as Lua.

Read `automation` first. It translates one automation, and calls the other parts.

- Read the folder: `yaml_parser`, `folder` (limits, links), `includes`, `blueprints`, `configuration`
  (`configuration.yaml` and its packages), `registries`, `helper_entities`, `home_settings`, and `installation` (all
  of them). `values` converts single values.
- Find the counterparts in Lares: `entities` (entity → device and attribute, or variable), `known_devices` (devices by
  serial number or name), and `places` (entities by area, floor, and label).
- Translate triggers and conditions: `triggers`, `conditions`, `purpose_specific` (`door.opened`), `states` (states
  and comparisons), and `times`.
- Translate templates from Jinja to Lua: `templates` (whole templates), `template_translator` (expressions), and
  `scope` (the names in a template).
- Translate actions: `actions` (`choose`, `repeat`), `waits`, `services` (by domain), and `commands` (for devices).
  `statements` collects the Lua statements and the reasons for untranslated parts (`not_translated`).
- Write Lua: `lua` (literals, indentation), `entity_values` (expressions for values), and `lua_file` (the common parts
  of files). `automation`, `scripts`, and `scenes` create files. The files require `homeassistant.lua`.
- Write the results: `hub_checks` (the hub's own checks), `config_files` (files), and `records` (rooms, names,
  variables).
"""
