"""Importers of published data sets, and of a folder of one's own screenshots, for `mira data import`.

    registry      the importers by name; packages add their own
    items         what an importer yields: a picture with its task, and what is right
    rows          reads JSON, JSON Lines, CSV and parquet row by row; errors name the row
    pictures      sizes, and upright copies of pictures that EXIF data turn
    examples      turns items into the examples of `mira train grpo`

Each data set has one module, which says where its format is published. Nothing here downloads anything.
"""
