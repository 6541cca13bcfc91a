"""The only importer of the C library: the door, and a class for each thing that lives behind it."""
