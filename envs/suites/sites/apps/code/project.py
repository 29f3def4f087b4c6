"""The content of the project's commits, in order."""

from __future__ import annotations

from typing import NamedTuple


class Feature(NamedTuple):
    """A function that one commit adds to a module."""

    author: str
    module: str
    signature: str
    doc: str
    result: str

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]


class Change(NamedTuple):
    """A commit that replaces text in one file."""

    author: str
    path: str
    old: str
    new: str
    message: str


class Note(NamedTuple):
    """A commit that adds a paragraph to a document."""

    author: str
    path: str
    text: str
    message: str


Step = Feature | Change | Note

STEPS: tuple[Step, ...] = (
    Feature("noor", "units", "feet_to_metres(feet)", "Length in metres.", "feet * 0.305"),
    Feature("noor", "units", "metres_to_feet(metres)", "Length in feet.", "metres / 0.3048"),
    Feature("tomasz", "stations", "station_key(name)", "The name as the catalogue spells it.", "name.lower()"),
    Feature("tomasz", "stations", "by_country(stations, code)", "Stations of one country.",
            "[s for s in stations if s.country == code]"),
    Change("noor", "tidemark/units.py", "0.305", "0.3048", "units: a foot is 0.3048 m"),
    Feature("priya", "harmonics", "speed(constituent)", "Degrees per hour.", "SPEEDS[constituent]"),
    Feature("priya", "harmonics", "phase(constituent, hours)", "Phase in degrees after some hours.",
            "SPEEDS[constituent] * hours % 360"),
    Note("noor", "docs/install.md", "Install with `pip install tidemark`; Python 3.10 or later.",
         "docs: how to install"),
    Feature("mei", "readers", "read_csv(path)", "Heights from a file of comma separated values.",
            "[parse_row(line) for line in open(path)]"),
    Feature("mei", "readers", "parse_row(line)", "Time and height of one line.", "tuple(line.split(','))"),
    Feature("diego", "cli", "today(station)", "Prints the tides of today.", "print_table(station, date.today())"),
    Feature("priya", "harmonics", "amplitude(constituent, node)", "Amplitude with the nodal factor applied.",
            "AMPLITUDES[constituent] * node"),
    Change("mei", "tidemark/readers.py", "in open(path)]", "in open(path, encoding='utf-8')]",
           "readers: files are UTF-8"),
    Feature("tomasz", "stations", "nearest(stations, lat, lon)", "The station closest to a point.",
            "min(stations, key=lambda s: distance(s, lat, lon))"),
    Feature("tomasz", "stations", "distance(station, lat, lon)", "Great circle distance in kilometres.",
            "6371.0 * angle(station, lat, lon)"),
    Feature("hanna", "plotting", "curve(heights)", "The tide curve as a list of points.",
            "list(enumerate(heights))"),
    Note("hanna", "docs/plotting.md", "A curve is drawn with `tidemark plot STATION`.", "docs: first plot"),
    Feature("kofi", "cache", "cache_path(station)", "Where the tables of a station are kept.",
            "ROOT / f'{station.key}.json'"),
    Feature("kofi", "cache", "is_fresh(path, days=7)", "True while the file is recent.",
            "age_in_days(path) < days"),
    Change("kofi", "tidemark/cache.py", "days=7", "days=30", "cache: keep tables for a month"),
    Feature("noor", "tables", "high_water(heights)", "The highest value of a day.", "max(heights)"),
    Feature("noor", "tables", "low_water(heights)", "The lowest value of a day.", "min(heights)"),
    Feature("noor", "tables", "tidal_range(heights)", "Difference of high and low water.",
            "high_water(heights) - low_water(heights)"),
    Feature("lucas", "datum", "to_chart_datum(height, offset)", "Height above chart datum.", "height - offset"),
    Feature("lucas", "datum", "to_mean_sea_level(height, offset)", "Height above mean sea level.",
            "height + offset"),
    Note("lucas", "docs/datum.md", "Heights are above chart datum unless a function says otherwise.",
         "docs: which datum"),
    Feature("diego", "cli", "print_table(station, day)", "Prints one line for each turn of the tide.",
            "render(tables.turns(station, day))"),
    Feature("priya", "harmonics", "predict(constituents, hours)", "Height after some hours, in metres.",
            "sum(amplitude(c, 1.0) * cos(phase(c, hours)) for c in constituents)"),
    Change("priya", "tidemark/harmonics.py", "cos(phase(c, hours))", "cos(radians(phase(c, hours)))",
           "harmonics: phases are in degrees"),
    Feature("hanna", "plotting", "axis_labels(hours)", "Labels of the time axis.",
            "[f'{h:02d}:00' for h in hours]"),
    Feature("kofi", "alerts", "exceeds(height, limit)", "True when a height calls for a warning.",
            "height > limit"),
    Feature("kofi", "alerts", "message(station, height)", "Text of a warning.",
            "f'{station.name}: {height:.1f} m'"),
    Change("kofi", "tidemark/alerts.py", "height > limit", "height >= limit", "alerts: the limit itself counts"),
    Feature("mei", "readers", "read_json(path)", "Heights from a JSON file.", "json.loads(path.read_text())"),
    Note("mei", "docs/formats.md", "CSV and JSON files are read; times are in UTC.", "docs: file formats"),
    Feature("lucas", "datum", "offsets(station)", "All known datum offsets of a station.",
            "dict(station.offsets)"),
    Feature("tomasz", "stations", "search(stations, text)", "Stations whose name contains the text.",
            "[s for s in stations if text in s.name]"),
    Change("tomasz", "tidemark/stations.py", "if text in s.name]", "if text.lower() in s.name.lower()]",
           "stations: search ignores case"),
    Feature("diego", "cli", "export(station, path)", "Writes a year of tides to a file.",
            "path.write_text(render(tables.year(station)))"),
    Feature("noor", "tables", "turns(station, day)", "High and low waters of one day.",
            "extrema(predict_day(station, day))"),
    Feature("noor", "tables", "year(station)", "All turns of the tide in a year.",
            "[turns(station, day) for day in days()]"),
    Note("diego", "docs/cli.md", "`tidemark export STATION FILE` writes a whole year.", "docs: the command line"),
    Feature("hanna", "plotting", "shade_night(axis, sun)", "Darkens the hours between sunset and sunrise.",
            "axis.axvspan(sun.set, sun.rise)"),
    Feature("kofi", "cache", "evict(limit_mb)", "Drops the oldest tables beyond a size.",
            "remove(oldest_beyond(limit_mb))"),
    Feature("priya", "harmonics", "nodal_factor(constituent, year)", "Correction for the 18.6 year cycle.",
            "1.0 + 0.037 * cos(radians(node(year)))"),
    Change("lucas", "pyproject.toml", 'requires-python = ">=3.9"', 'requires-python = ">=3.10"',
           "packaging: Python 3.9 is no longer supported"),
    Feature("mei", "readers", "skip_comments(lines)", "Lines without those that start with a hash.",
            "[line for line in lines if not line.startswith('#')]"),
    Feature("tomasz", "stations", "time_zone(station)", "Name of the station's time zone.",
            "ZONES[station.country]"),
    Change("hanna", "tidemark/plotting.py", "{h:02d}:00", "{h:02d} h", "plotting: shorter labels"),
    Feature("kofi", "alerts", "subscribe(address, station)", "Asks for warnings by mail.",
            "SUBSCRIPTIONS.add((address, station.key))"),
    Feature("kofi", "alerts", "unsubscribe(address, station)", "Takes an address off the list.",
            "SUBSCRIPTIONS.discard((address, station.key))"),
    Note("kofi", "docs/alerts.md", "Warnings are sent once per tide, never twice.", "docs: warnings"),
    Feature("diego", "cli", "stations(text)", "Lists the stations that match.",
            "render(search(load(), text))"),
    Change("noor", "tidemark/tables.py", "return max(heights)", "return max(heights, default=None)",
           "tables: a day without heights has no high water"),
    Feature("lucas", "datum", "between(a, b, station)", "Offset from one datum to another.",
            "offsets(station)[b] - offsets(station)[a]"),
    Feature("hanna", "plotting", "save(figure, path)", "Writes a figure as PNG or SVG.",
            "figure.savefig(path)"),
    Feature("mei", "readers", "detect_format(path)", "Name of the format, by suffix.",
            "path.suffix.lstrip('.').lower()"),
    Note("noor", "docs/glossary.md", "Spring tide: the greatest range, near new and full moon.",
         "docs: start a glossary"),
)  # fmt: skip
"""Commits on the branch `master`, between the releases."""

NETCDF: tuple[Step, ...] = (
    Feature("mei", "netcdf", "read_netcdf(path)", "Heights from a netCDF file.", "Dataset(path)['height'][:]"),
    Feature("mei", "netcdf", "write_netcdf(path, heights)", "Writes heights to a netCDF file.",
            "Dataset(path, 'w').store(heights)"),
    Note("mei", "docs/formats.md", "netCDF files need the extra `tidemark[netcdf]`.", "docs: netCDF"),
)  # fmt: skip
"""Commits on a merged branch."""

DARK_PLOTS: tuple[Step, ...] = (
    Feature("hanna", "themes", "dark()", "Colours for a dark background.", "{'line': '#7fc8ff', 'back': '#101820'}"),
    Feature("hanna", "themes", "light()", "Colours for a light background.", "{'line': '#005b96', 'back': 'white'}"),
    Change("hanna", "tidemark/plotting.py", "{h:02d} h", "{h:d} h", "plotting: hours without a leading zero"),
)  # fmt: skip
"""Commits on an open branch."""

STABLE: tuple[Step, ...] = (
    Change("lucas", "pyproject.toml", 'license = "MIT"', 'license = {text = "MIT"}',
           "packaging: older build tools read the licence"),
)  # fmt: skip
"""Commits on the branch with fixes for 0.6."""

RELEASES = {
    "0.1": "2025-02-21",
    "0.2": "2025-04-18",
    "0.3": "2025-06-13",
    "0.4": "2025-08-22",
    "0.5": "2025-10-17",
    "0.6": "2025-12-12",
    "0.7": "2026-02-13",
}
"""Released versions with their dates."""

FIRST_FILES = {
    "README.md": "# Tidemark\n\nTide tables and sea level for Python.\n",
    "LICENSE": "MIT License\n\nCopyright (c) 2025 The Tidemark authors\n",
    "pyproject.toml": (
        '[project]\nname = "tidemark"\ndynamic = ["version"]\nrequires-python = ">=3.9"\nlicense = "MIT"\n'
        'dependencies = ["numpy"]\n'
    ),
    "CHANGES.md": "# Changes\n",
    "tidemark/__init__.py": '"""Tide tables and sea level."""\n\n__version__ = "0.0"\n',
}
