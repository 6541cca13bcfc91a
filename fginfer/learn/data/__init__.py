"""Examples, features, labels and readers: everything between a user's objects and the arrays of the core."""
