"""Notices: what people are told of, in the page, by e-mail and by webhook, as each has chosen.

Rooms above call `telling.tell`; nothing here knows what a run or a review is.
"""
