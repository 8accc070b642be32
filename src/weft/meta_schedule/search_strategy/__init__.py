"""search strategy"""
