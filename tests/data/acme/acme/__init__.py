"""A package that adds one entry of each kind to Mira; `entry_points.txt` beside it is what its installation writes."""
