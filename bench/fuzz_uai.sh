#!/usr/bin/env bash
# usage: bench/fuzz_uai.sh [INPUTS [FIRST]] : attacks the UAI reader and writer under ASan and UBSan (default: a million inputs)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
${CC:-cc} -std=gnu11 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off \
  -D_POSIX_C_SOURCE=200809L -I"$here/csrc" -I"$here/csrc/include" -I"$here/tests/c" \
  "$here/bench/fuzz_uai.c" "$here"/csrc/{decimal,decimal_text,distinct,uai,uai_write,model,order,util}.c -o "$build/fuzz_uai" -lm -lpthread
"$build/fuzz_uai" "${1:-1000000}" "${2:-1}"
