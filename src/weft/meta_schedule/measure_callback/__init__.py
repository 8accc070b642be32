"""measure callback"""
