"""schedule rule"""
