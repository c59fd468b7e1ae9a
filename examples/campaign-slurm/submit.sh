#!/bin/bash
# Submits the array, and a job that joins its journals once all tasks have ended, however they did.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export FLASHPROOF_CAMPAIGN=${FLASHPROOF_CAMPAIGN:-$PWD/flashproof-campaign}
array=$(sbatch --parsable campaign.sbatch)
sbatch --dependency="afterany:${array%%;*}" --job-name=flashproof-merge --time=00:10:00 \
  --output=flashproof-merge.log --wrap \
  'npx flashproof merge "$FLASHPROOF_CAMPAIGN"/shard-*.jsonl --json flashproof.json --junit flashproof.xml'
