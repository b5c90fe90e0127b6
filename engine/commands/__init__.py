"""The commands of `python -m engine`, a module each; `engine.__main__` gathers them."""
