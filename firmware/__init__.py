"""What turns a box into the appliance: the single file and how it is built, services, installation."""
