"""A trace turned into pictures: what the browser draws from, and the automaton's graph."""
