"""Live runs in the browser: one tailer a web process reads what was committed, sockets send it on (docs/api.md)."""
