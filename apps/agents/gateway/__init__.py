"""Models behind one door: what is asked of them, what it may cost, how long it may take, and how it may fail.

`Gateway.ask` is the whole of it. litellm, which knows the providers, is imported with the first question, because that
takes seconds; nothing here reaches any address but the model's.
"""
