"""Tests of `appliance/automations/`."""
