"""space generator"""
