"""feature extractor"""
