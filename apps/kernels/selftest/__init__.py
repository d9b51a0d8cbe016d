"""The judge tried on candidates whose verdict is known: what cheats must be caught for the true reason, what is honest not.

`index.toml` says what is expected of each; `candidates/` and `problems/` hold them as plain files.
"""
