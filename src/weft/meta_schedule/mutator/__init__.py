"""mutator"""
