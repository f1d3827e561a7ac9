"""The sentences of `lares why`. Read `explain`, and then the file of each kind of object."""
