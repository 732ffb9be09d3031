"""The applications, a module for each kind."""
