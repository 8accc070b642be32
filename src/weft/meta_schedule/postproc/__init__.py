"""postproc"""
