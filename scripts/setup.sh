#!/bin/sh
# setup.sh [demo|all]: sets up .venv and a Chromium. Does nothing if nothing has changed.
#   demo   the core, which runs the embedded model and API models: what `make demo` needs
#   all    every extra that the tests need, torch among them: `make test`, `mira train`, `mira sites`
# PYTHON selects the interpreter (3.11 or newer). PIP_ARGS is passed to pip, for example an index of CPU wheels.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
say() { printf '\033[2m[setup]\033[0m %s\n' "$*"; }
die() { printf '[setup] %s\n' "$*" >&2; exit 2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "needs root for: $*  (run it as root, then run this script again)"; fi
}

command -v "$PYTHON" >/dev/null || die "no $PYTHON here: install Python 3.11 or newer, or set PYTHON"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$PYTHON is older than 3.11: set PYTHON to a newer one"

target=${1:-all}
case $target in demo | all) ;; *) die "setup.sh takes demo or all, not $target" ;; esac

# A stamp per set, computed from the files that define it. `all` includes `demo`.
stamp=$(cat pyproject.toml constraints-cpu.txt scripts/setup.sh | cksum)
is_set_up() { [ "$(cat ".venv/.stamp-$1" 2>/dev/null || true)" = "$stamp" ]; }

# --no-compile: `compile_packages` does it on all cores.
install() {
    # shellcheck disable=SC2086
    .venv/bin/pip install --no-compile --quiet --disable-pip-version-check ${PIP_ARGS:-} "$@"
}

# Some packages hold templates that are no valid modules; pip ignores them, too.
compile_packages() { .venv/bin/python -W ignore -m compileall -q -j 0 "${1:-.venv/lib}" >/dev/null 2>&1 || true; }

if ! is_set_up all && ! is_set_up "$target"; then
    if [ ! -x .venv/bin/python ]; then
        say "virtual environment"
        "$PYTHON" -m venv .venv 2>/dev/null || {
            rm -rf .venv
            as_root apt-get update -qq
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
            "$PYTHON" -m venv .venv
        }
    fi
    if [ "$target" = demo ]; then
        say "Python packages of the core (about 600 MB)"
        install -e .
    else
        say "Python packages with all extras (about 2 GB, a few minutes the first time)"
        install -c constraints-cpu.txt torch
        compile_packages .venv/lib/python3*/site-packages/torch & # on another core: pip uses one
        install -c constraints-cpu.txt -e '.[arc,dev,mcp,serving,sites,training]'
        wait
    fi
    compile_packages
    printf '%s' "$stamp" > ".venv/.stamp-$target"
fi

if ! .venv/bin/mira doctor >/dev/null 2>&1; then
    say "Chromium: downloading Playwright's build"
    if ! timeout 300 .venv/bin/python -m playwright install chromium >/dev/null 2>&1; then
        say "Playwright's Chromium cannot be downloaded; installing the distribution's"
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
    fi
    .venv/bin/mira doctor >/dev/null 2>&1 || {
        say "Chromium's system libraries are missing; installing them"
        as_root env DEBIAN_FRONTEND=noninteractive .venv/bin/python -m playwright install-deps chromium >/dev/null
        .venv/bin/mira doctor || die "Chromium does not start; set MIRA_CHROMIUM to another one"
    }
fi

# A lighter browser, for tests (tests/browsers.py): Debian has it beside its Chromium. Tried once, and nobody needs it.
if [ "$target" = all ] && [ ! -e .venv/.headless-shell ]; then
    touch .venv/.headless-shell
    if dpkg -s chromium >/dev/null 2>&1 && ! command -v chromium-headless-shell >/dev/null; then
        say "Chromium's headless shell, for tests"
        (as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium-headless-shell >/dev/null 2>&1) || true
    fi
fi
