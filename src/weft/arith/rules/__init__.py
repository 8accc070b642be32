"""The tables of rewrite rules, one module for each family of root operators."""
