"""Memory of arrays: fresh blocks, DLPack, the plan of working memory."""
