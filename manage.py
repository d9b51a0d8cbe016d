#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pragma_web.settings")
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as lack:
        sys.exit(f"{sys.executable} has no {lack.name}. After `make setup`, run: .venv/bin/python {' '.join(sys.argv)}")
    execute_from_command_line(sys.argv)
