"""The Coder and the Conductor that are models: what they are told, and what is made of what they say."""
