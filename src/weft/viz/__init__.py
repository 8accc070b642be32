"""``weft viz``: what the compiler did, as data and as a page.

``picture_of`` compiles a model again and records it; the ``Picture`` has the data of the page
(docs/design/0022-pictures.md), its HTML, and small drawings. What the page shows is computed when
it is asked for, one module for each of its parts: ``passes``, ``graphs``, ``fusion``, ``kernels``,
``memory``, ``timing``, ``report``.
"""
