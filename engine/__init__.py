"""The engine: constraint → automaton → classes → messages → draw → record. It knows no page and no picture."""
