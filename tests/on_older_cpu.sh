#!/usr/bin/env bash
# Runs a command as on a processor without AVX-512 (`avx2`) or with SSE only (`scalar`):
#
#     tests/on_older_cpu.sh scalar cargo test --release
#
# ORTHOBCD_SIMD caps our own kernels. The libraries (matrix products, factorizations, NumPy, libm) ask the processor:
# where it allows that, tests/hide_cpu.c answers for it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
library=${CARGO_TARGET_DIR:-$here/../target}/hide_cpu.so
case $1 in
    avx2) hide=avx512 tunables=-AVX512F,-AVX512VL ;;
    scalar) hide=avx tunables=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-FMA4 ;;
    *) echo "usage: $0 avx2|scalar command" >&2; exit 2 ;;
esac
export ORTHOBCD_SIMD=$1
shift

mkdir -p "$(dirname "$library")"
# The shell's own `true` would load no library.
if cc -shared -fPIC -O1 -o "$library" "$here/hide_cpu.c" -ldl && HIDE_CPU=$hide LD_PRELOAD=$library env true; then
    export HIDE_CPU=$hide LD_PRELOAD=$library GLIBC_TUNABLES=glibc.cpu.hwcaps=$tunables
else
    echo "$0: cpuid cannot be hidden here: only our own kernels are capped" >&2
fi
exec "$@"
