#!/bin/sh
# Writes requirements.lock: the newest versions, for Python 3.11 and later on Linux, that fit pyproject.toml together.
# Versions without hashes: torch has different files for each build (CPU, CUDA). LOCK_ARGS is passed to uv.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
command -v uv >/dev/null || { echo "needs uv: .venv/bin/pip install uv" >&2; exit 2; }
{
    echo "# Resolved by \`make lock\`. Use: PIP_ARGS='-c requirements.lock' make setup"
    # shellcheck disable=SC2086
    uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links --constraints constraints-cpu.txt \
        --extra adapters --extra arc --extra dev --extra gguf --extra mcp --extra serving --extra sites --extra training \
        --no-emit-package mira-web ${LOCK_ARGS:-}
} > requirements.lock.new
mv requirements.lock.new requirements.lock
