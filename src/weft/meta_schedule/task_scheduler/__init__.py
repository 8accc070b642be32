"""task scheduler"""
