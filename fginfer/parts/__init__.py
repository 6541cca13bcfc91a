"""One model in parts: on threads, on disk, or on many machines, with a bound that is valid at any moment.

Variables that several parts share have a copy in each, and multipliers that sum to 0 over the copies: the sum of the
parts' bounds is then a bound of the whole, whatever the multipliers. `rounds` is the loop; it knows a crew of parts
and not where they live.
"""
