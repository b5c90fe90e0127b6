"""The papers' tables, run again: accuracy and satisfaction by arm, temperature and steps."""
