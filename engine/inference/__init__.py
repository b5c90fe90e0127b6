"""Exact inference on mean field × automaton: one law, three algorithms (`chain`, `tree`, `midpoint`)."""
