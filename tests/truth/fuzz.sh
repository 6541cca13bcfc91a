#!/usr/bin/env bash
# Attacks every reader with damaged files: the readers in C under ASan and UBSan (guided by coverage where clang has libFuzzer,
# else by random damage), those in Python by mutation. Says how many inputs ran; exit code 1 if one of them did harm.
#
# usage: tests/truth/fuzz.sh [C_INPUTS [PYTHON_INPUTS [SEED]]]     (default: a million, and 10000 of each Python reader)
#        FUZZ_FOLDER=DIR tests/truth/fuzz.sh ...     keeps in DIR what libFuzzer has learned (corpus/), so that the next run goes on
#                                              from there, and how many inputs ran so far (counts; readers/counts and
#                                              what did harm to a Python reader); another SEED each time
#        TRUTH_LEDGER=tests/truth/ran.csv tests/truth/fuzz.sh ...     adds the inputs to those of docs/how/checks.md
#                                              (see ledger.py)
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
c_inputs=${1:-1000000} python_inputs=${2:-10000} seed=${3:-1}
harm=0
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mapfile -t sources < <(ls "$here"/csrc/{base,model,io}/*.c | grep -v base/pool.c) # fuzz_uai.c has one without threads
flags=(-std=gnu11 -O2 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -ffp-contract=off -D_POSIX_C_SOURCE=200809L
    "-DFGI_VERSION=\"fuzz\"" -DFGI_SMALL_PIECES -DFGI_CHECKED -I"$here/csrc" -I"$here/csrc/include" -I"$here/tests/c")

clang=$(compgen -c clang | grep -E '^clang(-[0-9]+)?$' | sort -V | tail -1 || true) # Debian's has its version in the name
folder=${FUZZ_FOLDER:-$build}
mkdir -p "$folder/corpus"

# Coverage of what looks at text only: with all of base and model, clearing the counters takes as long as reading (25,000 against
# 42,000 inputs a second).
guided() {
    mkdir "$build/objects" && for source in "${sources[@]}"; do
        case $source in */io/* | */decimal*.c | */util.c) kinds=fuzzer-no-link,address,undefined ;; *) kinds=address,undefined ;; esac
        "$clang" "${flags[@]}" -fsanitize="$kinds" -c "$source" -o "$build/objects/$(basename "$(dirname "$source")")_$(basename "$source").o" ||
            return 1
    done
    "$clang" "${flags[@]}" -DFUZZ_COVERAGE -fsanitize=fuzzer,address,undefined "$here/tests/truth/fuzz_uai.c" "$build"/objects/*.o \
        -o "$build/fuzz" -lm -lpthread
}
export ASAN_OPTIONS=quarantine_size_mb=1:malloc_context_size=2

if [ -n "$clang" ] && guided 2>"$build/log"; then
    for file in "$here"/tests/corpus/*.{uai,LG,wcsp,cfn}; do # the first byte says which reader takes it, and how
        case $file in *.LG) first=1 ;; *.wcsp) first=w ;; *.cfn) first=c ;; *) first=0 ;; esac
        { printf "$first"; cat "$file"; } >"$folder/corpus/$(basename "$file")"
    done
    "$build/fuzz" -runs="$c_inputs" -seed="$seed" -max_len=2000 -verbosity=0 -print_final_stats=1 "$folder/corpus" 2>&1 |
        tee "$build/run.log" || harm=1 # also when it was interrupted: what ran counts, and the run did not reach its end
    ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/run.log")
else
    echo "no libFuzzer: random damage"
    ${CC:-cc} "${flags[@]}" -fsanitize=address,undefined "$here/tests/truth/fuzz_uai.c" "${sources[@]}" -o "$build/fuzz" -lm -lpthread
    "$build/fuzz" "$c_inputs" "$seed" | tee "$build/run.log" || harm=1
    ran=$(sed -n 's/^\([0-9]*\) inputs from .*/\1/p' "$build/run.log") # nothing if it fell: then none are counted
fi
echo "${ran:-0}" >>"$folder/counts"
"${PYTHON:-python3}" "$here/tests/truth/ledger.py" note fuzz.sh inputs "${ran:-0}" "$harm" || echo "the ledger was not written"
echo "C reader: ${ran:-0} inputs now, $(awk '{ n += $1 } END { printf "%d", n }' "$folder/counts") in all"
"${PYTHON:-python3}" "$here/tests/truth/fuzz_readers.py" --inputs "$python_inputs" --seed "$seed" --folder "$folder/readers" || harm=1
exit "$harm"
