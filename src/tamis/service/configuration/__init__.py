"""Settings from options, variables of the environment and a file, by one declaration."""
