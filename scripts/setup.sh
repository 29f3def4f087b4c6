#!/bin/sh
# Brings up .venv with everything the two commands need, and a Chromium. Does nothing when nothing changed.
# PYTHON picks the interpreter (3.11 or newer). PIP_ARGS is passed to pip, for example an index of CPU wheels.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
say() { printf '\033[2m[setup]\033[0m %s\n' "$*"; }
die() { printf '[setup] %s\n' "$*" >&2; exit 2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "needs root for: $*  (run it yourself as root, then again)"; fi
}

command -v "$PYTHON" >/dev/null || die "no $PYTHON here: install Python 3.11 or newer, or set PYTHON"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$PYTHON is older than 3.11: set PYTHON to a newer one"

stamp=$(cat pyproject.toml constraints-cpu.txt scripts/setup.sh | cksum)
if [ "$(cat .venv/.stamp 2>/dev/null || true)" != "$stamp" ]; then
    if [ ! -x .venv/bin/python ]; then
        say "virtual environment"
        "$PYTHON" -m venv .venv 2>/dev/null || {
            rm -rf .venv
            as_root apt-get update -qq
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
            "$PYTHON" -m venv .venv
        }
    fi
    say "Python packages (about 1 GB, a few minutes the first time)"
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet --disable-pip-version-check ${PIP_ARGS:-} -c constraints-cpu.txt torch
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet --disable-pip-version-check ${PIP_ARGS:-} -c constraints-cpu.txt -e '.[dev,serving,sites,training]'
    printf '%s' "$stamp" > .venv/.stamp
fi

if ! .venv/bin/mira doctor >/dev/null 2>&1; then
    say "Chromium: trying Playwright's own"
    if ! timeout 300 .venv/bin/python -m playwright install chromium >/dev/null 2>&1; then
        say "Playwright's own cannot be downloaded here; taking the distribution's"
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
    fi
    .venv/bin/mira doctor >/dev/null 2>&1 || {
        say "Chromium's system libraries are missing; installing them"
        as_root env DEBIAN_FRONTEND=noninteractive .venv/bin/python -m playwright install-deps chromium >/dev/null
        .venv/bin/mira doctor || die "no Chromium could be started; set MIRA_CHROMIUM to one"
    }
fi
