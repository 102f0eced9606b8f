"""Drivers of boards that have no command line for every verb: our words in, one JSON answer out."""
