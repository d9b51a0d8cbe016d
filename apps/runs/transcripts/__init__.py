"""A finished run as one JSON that can be taken in elsewhere and gone through again without model, judge or host."""
