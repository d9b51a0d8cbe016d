"""The database of a team that has worked with PRAGMA for years, filled in minutes, and the addresses of all its pages."""
