"""Variants of a reference answer: right ones in other words, wrong ones that look right, and odd ones.

Every function takes a random source and returns values; the same source gives the same values. Nothing here says
which of them are right: that is what the two evaluators are asked.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

Json = Any

_ACCENTS = {"a": "á", "e": "é", "i": "í", "o": "ö", "u": "ü", "c": "ç", "n": "ñ"}
_DASHES = ("-", "–", "—", "‑", " ")
EDGES = (
    "{}.",
    "{},",
    "{}!",
    "{}?",
    "{};",
    "{}:",
    "`{}`",
    '"{}"',
    "'{}'",
    "“{}”",
    "‘{}’",
    " {} ",
    "{}\n",
    "({})",
    "*{}*",
    "{}...",
    "...{}",
    "“{}.”",
    "'{}",
    "{}'s",
)
NOISE = " .,;:!?'\"`-–()[]{}<>/\\@#$%&*+=_^|~€£0123456789azAZéßñ™…\u00a0\t\n²½"
SENTENCES = (
    "The answer is {}.",
    "The answer is {}",
    "It is {}, I think.",
    "{} is the answer",
    "answer:{}",
    "a,{},b",
    "a, {}, b",
    "x{}",
    "{}x",
    "{} {}",
    "not {}",
    "[{}]",
    "{}\nThat is all.",
    "<b>{}</b>",
    "{}/{}",
    "#{}",
    "I found {}. There is nothing else.",
)


def texts(text: str, random: Random) -> list[str]:
    """Of any text."""
    found = [text, text.upper(), text.lower(), text.title(), text.swapcase(), text[1:], text[:-1], text[::-1], ""]
    found += [form.format(text) for form in EDGES]
    found += [re.sub("[-–]", dash, text) for dash in _DASHES] + [text.replace(" ", "-"), text.replace(" ", "")]
    found += [text.replace(" ", "  "), text.replace(" ", "\u00a0"), text.replace("'", "’"), text.replace("&", "&amp;")]
    found += [text.replace("&", "and"), text.replace(",", ""), text.replace(".", ""), f"{text} ™", f"{text} 🙂"]
    found += [text.replace("canceled", "cancelled"), text.replace("™", "").replace("®", ""), text.replace("’", "'")]
    letters = [n for n, letter in enumerate(text) if letter.lower() in _ACCENTS]
    for n in random.sample(letters, min(2, len(letters))):
        found.append(text[:n] + _ACCENTS[text[n].lower()] + text[n + 1 :])
    if len(text) > 3:
        n = random.randrange(len(text) - 1)
        found += [text[:n] + text[n + 1] + text[n] + text[n + 2 :], text[:n] + text[n + 1 :], text[:n] + "z" + text[n:]]
    words = text.split()
    if len(words) > 1:
        found += [" ".join(reversed(words)), " ".join(words[:-1]), " ".join(words[1:]), " ".join([*words, words[0]])]
    return [*found, *_numerals(text), *(_noisy(text, random) for _ in range(6))]


def _noisy(text: str, random: Random) -> str:
    """With up to three characters put in, taken out or replaced anywhere."""
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(["", random.choice(NOISE)]) + text[at + random.randint(0, 1) :]
    return text


def _numerals(text: str) -> list[str]:
    """Every number in *text* as somebody else might have written it, or missed it."""
    match = re.search(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
    if match is None:
        return []
    digits = match[0].replace(",", "")
    value = float(digits)
    forms = [digits, f"{value:g}", f"{value:,.2f}", f"{value:,.0f}", f"{value + 1:g}", f"{digits}0", f"{digits}.0"]
    forms += [f"1{digits}", digits[:-1], f"0{digits}", f"-{digits}", f"${digits}", f"{digits},000", f"{digits},5"]
    forms += [
        f"5,{digits}",
        f"{digits}.5",
        f"{digits}%",
        f"{digits}km",
        f"{digits} units",
        f"{digits[:1]},{digits[1:]}",
    ]
    return [text[: match.start()] + form + text[match.end() :] for form in forms if form]


def answers(parts: list[str], random: Random) -> list[str]:
    """Of an answer that must hold all of *parts*."""
    joined = [glue.join(parts) for glue in (", ", ",", " ", " and ", "\n", "; ", ". ", "|")]
    found = [*joined, *(form.format(joined[0], joined[0]) for form in SENTENCES)]
    found += ["", " ", "N/A", "n/a", "N/A.", "'N/A'", "N/A: there is none", "not applicable", "None", "0", "yes"]
    for n, part in enumerate(parts):
        for variant in random.sample(texts(part, random), min(14, len(texts(part, random)))):
            found.append(", ".join([*parts[:n], variant, *parts[n + 1 :]]))
    if len(parts) == 1:
        found += texts(parts[0], random)
    if len(parts) > 1:
        found += [", ".join(parts[:-1]), ", ".join(parts[1:]), ", ".join(reversed(parts)), ",".join(reversed(parts))]
    return found


def leaf(value: Json, kind: str, random: Random) -> list[Json]:
    """Of one value of a JSON answer; *kind* is the format, or the type, that the task gives it."""
    found: list[Json] = [value, str(value), None, "", [value], [value, "other"], {"value": value}, f"{value} etc"]
    match kind:
        case "number" | "integer" | "currency":
            found += _amounts(float(str(value).replace(",", "") or 0))
        case "duration":
            found += _durations(str(value))
        case "distance":
            found += _distances(str(value))
        case "date":
            found += _dates(str(value))
        case "month":
            found += [str(value)[:3], str(value).lower(), f"{value} 2022", 1, "01", "5", "May", "13", f"{value}."]
        case "boolean":
            found += [True, False, "yes", "No", "true", "FALSE", "y", 1, 0, "on", "maybe", "Yes.", "t"]
        case "coordinates":
            found += _coordinates(value)
        case "url":
            found += _clone_addresses(str(value))
        case _:
            pass
    if isinstance(value, str):
        found += texts(value, random)
    return found


def _amounts(value: float) -> list[Json]:
    whole = int(value) if value == int(value) else value
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    found: list[Json] = [value, whole, -value, value + 0.05, value - 0.09, value + 0.1, value + 0.11, value + 1]
    found += [
        f"{value:.2f}",
        f"${value:.2f}",
        f"{value:,.2f}",
        f"${value:,.2f}",
        f"US${value:,.2f}",
        f"{value:.2f} USD",
    ]
    found += [f"USD {value:.2f}", f"€{value:.2f}", f"{value:.2f}€", f"£{value:.2f}", f"{value:.2f}".replace(".", ",")]
    found += [
        f"{value:,.2f}".replace(",", " "),
        f"{value:.2f} items",
        f"{whole} items",
        f"-${value:.2f}",
        f"$-{value:.2f}",
    ]
    found += [f"{value:.4f}", f"{value:.1f}", f"about {value:.2f}", f"{value:.2f}.", f"({value:.2f})", f"{value:e}"]
    found += [f"{value:.2f} or 40", f"{value:.2f}-{value + 1:.2f}", f" {whole} ", f"{whole}%", "free", "Free shipping"]
    found += [
        words[int(value)] if 0 <= value <= 10 else "twenty-three",
        f"{whole}.",
        f"#{whole}",
        f"{whole},",
        True,
        "nan",
    ]
    found += [f"{value:.2f} dollars", f"total: {value:.2f}", f"{int(value)}", f"{value:_.2f}", f"+{value:.2f}"]
    return found


def _durations(text: str) -> list[Json]:
    numbers = (re.search(rf"(\d+)\s*{unit}", text) for unit in ("h", "mi?n"))
    hours, minutes = (int(number[1]) if number else 0 for number in numbers)
    if clock := re.fullmatch(r"(\d+):(\d+):(\d+)", text):
        hours, minutes = int(clock[1]), int(clock[2])
    total = hours * 60 + minutes
    found: list[Json] = [
        total,
        str(total),
        f"{total} min",
        f"{total} minutes",
        f"{total}min.",
        f"{total}m",
        f"{total * 60} s",
    ]
    found += [
        f"{hours}h {minutes}m",
        f"{hours}h{minutes}m",
        f"{hours} hours {minutes} minutes",
        f"{hours}:{minutes:02}",
    ]
    found += [f"{hours} hour and {minutes} minutes", f"{hours:02}:{minutes:02}:00", f"{hours}:{minutes:02} hours"]
    found += [
        f"{total + 2} min",
        f"{total + 3} min",
        f"{total + 4} min",
        f"{total * 1.1:.1f} min",
        f"{total * 1.2:.1f} min",
    ]
    found += [
        f"{total / 60:.2f} hours",
        f"{total / 60:.2f}h",
        f"about {total} min",
        f"{total} mins",
        f"0:{total:02}:00",
    ]
    found += [f"{hours} hrs {minutes} mins", f"{hours}hr {minutes}min", f"{hours} h, {minutes} min", f"PT{total}M"]
    return found


def _distances(text: str) -> list[Json]:
    match = re.match(r"([\d.]+)\s*(k?m)", text)
    metres = float(match[1]) * (1000 if match[2] == "km" else 1) if match else 100.0
    found: list[Json] = [
        metres,
        f"{metres:g}",
        f"{metres:g}m",
        f"{metres:g} m",
        f"{metres:g} meters",
        f"{metres / 1000:g} km",
    ]
    found += [
        f"{metres / 1000:g}km",
        f"{metres / 1000:g} k",
        f"{metres / 1609.344:.3f} miles",
        f"{metres / 1609.344:.2f} mi",
    ]
    found += [f"{metres / 0.3048:.0f} ft", f"{metres / 0.3048:.0f} feet", f"{metres + 9:g} m", f"{metres + 11:g} m"]
    found += [f"{metres * 1.02:.3f} m", f"{metres * 1.03:.3f} m", f"{metres:,.0f} m", f"{metres / 1000:g} kilometers"]
    found += [
        f"{metres / 1000:g} km.",
        f"{metres / 1000:g} Km",
        f"about {metres:g} m",
        f"{metres:g} metre",
        f"{metres * 100:g} cm",
    ]
    found += [f"{metres / 0.9144:.1f} yards", f"{metres / 1000:g} KM", f"{metres / 1000:g}k"]
    return found


def _dates(text: str) -> list[Json]:
    from datetime import date, datetime, timedelta

    form = next((f for f in ("%B %d, %Y", "%B %d %Y", "%m/%d/%Y", "%b %d, %Y") if _reads(text, f)), None)
    day = datetime.strptime(text, form).date() if form else date(2023, 1, 16)
    forms = (
        "%Y-%m-%d",
        "%m/%d/%Y",
        "%m/%d/%y",
        "%d/%m/%Y",
        "%d.%m.%Y",
        "%B %d, %Y",
        "%B %d %Y",
        "%b %d, %Y",
        "%d %B %Y",
    )
    forms += ("%A, %B %d, %Y", "%a %b %d %Y", "%d-%b-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %y", "%b. %d, %Y", "%Y%m%d")
    forms += ("%m-%d-%Y", "%d-%m-%Y", "%Y-%m-%dT08:00:00", "%m/%d/%Y 10:15 AM", "%B %d, %Y 10:15", "the %d of %B %Y")
    forms += (
        "%B %dth, %Y",
        "%d of %B, %Y",
        "%B %Y",
        "%m/%d",
        "%Y",
        "%B,%d,%Y",
        "%b %d %Y at 3pm",
        "%Y-%m-%d 10:15:00 UTC",
    )
    found: list[Json] = [day.strftime(one) for one in forms]
    found += [(day + timedelta(days=n)).strftime("%B %d, %Y") for n in (-1, 1, 31, 365)]
    return found


def _reads(text: str, form: str) -> bool:
    from datetime import datetime

    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _coordinates(value: Json) -> list[Json]:
    latitude, longitude = (float(value[name]) for name in ("latitude", "longitude"))
    found: list[Json] = [[latitude, longitude], [str(latitude), str(longitude)], f"{latitude}, {longitude}"]
    found += [
        {"lat": latitude, "lon": longitude},
        {"lat": latitude, "lng": longitude},
        {"Lat": latitude, "Long": longitude},
    ]
    found += [{"LATITUDE": str(latitude), "LONGITUDE": str(longitude)}, {"Latitude": latitude, "Longitude": longitude}]
    found += [
        {"latitude": f" {latitude} ", "longitude": f" {longitude} "},
        {"latitude": latitude},
        {"lat": "", "lon": ""},
    ]
    found += [{"latitude": f"{latitude:.10f}", "longitude": f"{longitude:.10f}"}, {"y": latitude, "x": longitude}]
    found += [
        {"latitude": latitude + 9e-6, "longitude": longitude},
        {"latitude": latitude + 1.2e-5, "longitude": longitude},
    ]
    found += [
        {"latitude": longitude, "longitude": latitude},
        {"latitude": latitude, "longitude": longitude, "name": "x"},
    ]
    found += [
        f"{latitude} N, {-longitude} W",
        f"{latitude}N {-longitude}W",
        f"({latitude}, {longitude})",
        [longitude, latitude],
    ]
    found += [
        f"{latitude};{longitude}",
        f"{latitude} {longitude}",
        f"{latitude}/{longitude}",
        f"{latitude},{longitude}",
    ]
    found += [
        {"latitude": f"{latitude}°", "longitude": f"{longitude}°"},
        f"{latitude}°, {longitude}°",
        [latitude],
        "40.4",
    ]
    found += [f"Latitude: {latitude}, Longitude: {longitude}", f"{{'latitude': {latitude}, 'longitude': {longitude}}}"]
    return found


def _clone_addresses(text: str) -> list[Json]:
    path = text.partition(":")[2]
    found: list[Json] = [f"ssh://git@127.0.0.1:2222/{path}", f"git@127.0.0.1:{path}", f"git@metis.example:{path}"]
    found += [
        f"git@metis.example:2222/{path}",
        f"git@x:{path.removesuffix('.git')}",
        f"git@x:{path.upper()}",
        f"GIT@X:{path}",
    ]
    found += [f"git clone git@x:{path}", f"http://127.0.0.1:8023/{path}", f"ssh://git@x/{path}/", f"hub@x:{path}"]
    found += [f"ssh://x:2222/{path}", f"git@x:{path} ", f"`git@x:{path}`", f"https://x/{path}"]
    return found
