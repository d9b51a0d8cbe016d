"""Static rules: tripwires on a candidate's text. They name the line and what to do, and leave honest code alone.

They prove nothing: what ran is proven from outside the process. Where a text can be read two ways, no rule speaks.
"""
