#!/usr/bin/env bash
# Every figure of benches/RESULTS.md, on throwaway servers: run.sh [quick] [PART…]
# Parts: figures (the dashboard), drain (the worker), producers, peers (other queues; installs them from their
# registries below target/peers). Without one, all. `quick` is smaller where a part knows how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=()
parts=()
for word in "$@"; do
    case $word in
    quick) quick=(quick) ;;
    figures | drain | producers | peers) parts+=("$word") ;;
    -h | --help)
        sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        echo "run.sh: no part is called '$word'; there are figures, drain, producers and peers" >&2
        exit 2
        ;;
    esac
done
((${#parts[@]})) || parts=(figures drain producers peers)

echo "$(uname -sm), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -1), $(date -u +%F)"
for part in "${parts[@]}"; do
    printf '\n== %s\n' "$part"
    case $part in
    peers)
        few=()
        ((${#quick[@]})) && few=(--jobs 20000 --rounds 1)
        benches/peers/run.sh ${few[@]+"${few[@]}"}
        ;;
    figures) cargo bench --quiet --locked --bench figures ;;
    *) cargo bench --quiet --locked --bench "$part" -- ${quick[@]+"${quick[@]}"} ;;
    esac
done
