"""Everything that turns a box into the appliance: the single file and its build, services, installation."""
