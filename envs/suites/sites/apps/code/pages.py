"""The pages of the project's wiki."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    name: str
    author: str
    text: str


PAGES: tuple[Page, ...] = (
    Page(
        "WikiStart",
        "noor",
        """= Tidemark =
Tide tables and sea level for Python.

 * [wiki:Installation] and [wiki:FirstSteps]
 * [wiki:CommandLine], [wiki:FileFormats], [wiki:Plotting]
 * [wiki:Team], [wiki:Meetings], [wiki:ReleaseProcess], [wiki:SupportPolicy]
 * [wiki:Glossary]
""",
    ),
    Page(
        "Installation",
        "lucas",
        """= Installation =
Tidemark needs Python 3.10 or later and numpy.
{{{
pip install tidemark
}}}
The extra `netcdf` adds the netCDF reader. On Windows, install the C libraries first.
""",
    ),
    Page(
        "FirstSteps",
        "noor",
        """= First steps =
 1. List the stations of a country.
 2. Print the tides of today.
 3. Export a year.
See [wiki:CommandLine].
""",
    ),
    Page(
        "CommandLine",
        "diego",
        """= Command line =
|| `tidemark stations TEXT` || lists stations ||
|| `tidemark today STATION` || prints the tides of today ||
|| `tidemark export STATION FILE` || writes a year ||
The exit code is 3 when a station is unknown.
""",
    ),
    Page(
        "FileFormats",
        "mei",
        """= File formats =
CSV, JSON and netCDF are read; CSV and netCDF are written. Times are in UTC, heights in metres.
Lines that start with a hash are comments.
""",
    ),
    Page(
        "Plotting",
        "hanna",
        """= Plotting =
Curves are drawn with matplotlib. The default size of a figure is 1200 by 600 pixels.
A dark theme is being written on the branch `dark-plots`.
""",
    ),
    Page(
        "Team",
        "noor",
        """= Team =
|| '''Name''' || '''Works on''' || '''Lives in''' ||
|| Noor Haddad || tables, documentation || Rotterdam ||
|| Tomasz Zielinski || stations, datum || Gdansk ||
|| Priya Raman || harmonics || Chennai ||
|| Lucas Moreau || releases, packaging || Saint-Malo ||
|| Hanna Virtanen || plotting || Turku ||
|| Kofi Mensah || alerts, cache || Tema ||
|| Mei Tanaka || readers || Yokohama ||
|| Diego Alvarez || command line || Vigo ||
""",
    ),
    Page(
        "Meetings",
        "noor",
        """= Meetings =
The team meets every second Tuesday at 14:00 UTC. The notes are on the pages below.
 * [wiki:Meetings/2026-01-13]
 * [wiki:Meetings/2026-02-10]
 * [wiki:Meetings/2026-03-10]
""",
    ),
    Page(
        "Meetings/2026-01-13",
        "priya",
        """= Meeting of 13 January 2026 =
Present: Noor, Priya, Lucas, Kofi.
 * The nodal factors were checked against 40 stations.
 * Lucas prepares release 0.7.
""",
    ),
    Page(
        "Meetings/2026-02-10",
        "kofi",
        """= Meeting of 10 February 2026 =
Present: Kofi, Mei, Diego, Hanna, Lucas.
 * Release 0.7 is out on Friday.
 * Mail for warnings moves to a new server in April.
""",
    ),
    Page(
        "Meetings/2026-03-10",
        "hanna",
        """= Meeting of 10 March 2026 =
Present: Hanna, Tomasz, Noor.
 * The docs sprint is late; Noor asks for two more weeks.
 * The dark theme goes into 0.8.
""",
    ),
    Page(
        "ReleaseProcess",
        "lucas",
        """= Release process =
 1. All tickets of the milestone are closed or moved.
 2. CHANGES.md and the version are updated in one commit.
 3. The commit is tagged.
Release manager: Lucas Moreau. Deputy: Tomasz Zielinski.
""",
    ),
    Page(
        "SupportPolicy",
        "lucas",
        """= Support policy =
|| '''Version''' || '''Supported until''' ||
|| 0.5 || 2026-01-31 ||
|| 0.6 || 2026-06-30 ||
|| 0.7 || 2026-12-31 ||
Security fixes go into the last two versions.
""",
    ),
    Page(
        "Glossary",
        "noor",
        """= Glossary =
 Spring tide:: the greatest range, near new and full moon
 Neap tide:: the smallest range, near the quarters of the moon
 Chart datum:: the level from which charts measure depths
""",
    ),
    Page(
        "Constituents",
        "priya",
        """= Constituents =
|| '''Name''' || '''Speed''' || '''Origin''' ||
|| M2 || 28.984 || moon ||
|| S2 || 30.000 || sun ||
|| N2 || 28.440 || moon ||
|| K1 || 15.041 || moon and sun ||
|| O1 || 13.943 || moon ||
Speeds are in degrees per hour.
""",
    ),
    Page(
        "Stations",
        "tomasz",
        """= Stations =
The catalogue holds 412 stations in 37 countries. New stations need one year of observations.
""",
    ),
    Page(
        "Stations/Brest",
        "tomasz",
        """= Brest =
Observed since 1807. Chart datum lies 4.02 m below mean sea level. Tidal range at springs: 6.1 m.
""",
    ),
    Page(
        "Stations/Gdansk",
        "tomasz",
        """= Gdansk =
Observed since 1886. The tide is below 0.1 m, the wind decides. Heights are above mean sea level.
""",
    ),
    Page(
        "Stations/Tema",
        "kofi",
        """= Tema =
Observed since 1963. Tidal range at springs: 1.4 m. The gauge was replaced in 2019.
""",
    ),
    Page(
        "Stations/Yokohama",
        "mei",
        """= Yokohama =
Observed since 1930. Tidal range at springs: 1.5 m. Chart datum lies 1.15 m below mean sea level.
""",
    ),
    Page(
        "Alerts",
        "kofi",
        """= Alerts =
A warning is sent when a height reaches the limit, once per tide. Subscriptions end after 365 days.
""",
    ),
    Page(
        "Cache",
        "kofi",
        """= Cache =
Tables are kept for 30 days in `~/.cache/tidemark`. The cache holds at most 250 MB.
""",
    ),
    Page(
        "CodingStyle",
        "diego",
        """= Coding style =
Lines have at most 100 characters. Every function has a docstring and a test. British spelling.
""",
    ),
    Page(
        "Plans",
        "noor",
        """= Plans =
 * 0.8: dark theme, faster cache
 * 0.9: storm surges
 * 1.0: stable interface
""",
    ),
    Page(
        "Sponsors",
        "lucas",
        """= Sponsors =
The harbour of Rotterdam gave the server. The Baltic Sea Institute pays for the domain until 2028.
""",
    ),
    Page(
        "MailingList",
        "diego",
        """= Mailing list =
The list has about 340 readers. Moderators: Diego Alvarez and Hanna Virtanen. Attachments: at most 500 kB.
""",
    ),
    Page(
        "TitleIndex",
        "noor",
        """= Index of all pages =
[[TitleIndex]]
""",
    ),
)
