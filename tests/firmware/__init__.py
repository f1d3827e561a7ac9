"""Tests of what turns a box into the appliance."""
