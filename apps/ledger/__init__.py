"""Models the team may call, what they may cost, and what each call did."""
