"""Models trained from files, and the files trained models live in."""
