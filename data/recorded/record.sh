#!/bin/sh
# Measures the sweeps that ship. Usage: record.sh path/to/breakeven. Leave the machine alone meanwhile (ten minutes).
set -eu
breakeven=$1
folder=$(dirname "$0")
for workload in issue-21411 mean-all train-step matmul-contract sin-reduce; do
    new=$(mktemp -d)
    case $workload in matmul-contract) budget=120s ;; *) budget=90s ;; esac
    "$breakeven" measure "$workload" --budget "$budget" -o "$new/$workload.jsonl"
    mv "$new/$workload.jsonl" "$folder/$workload.jsonl"
    rmdir "$new"
done
