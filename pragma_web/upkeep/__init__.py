"""Keeping an installation: backups, putting one back, letting old things go."""
