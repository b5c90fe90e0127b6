"""How fast it is against peers, in one process: ratios carry to other machines, milliseconds don't."""
