"""cost model"""
