#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=hunch
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --exclusive
#SBATCH --mem=0
# hunch-serve over the nodes of a job of Slurm, a process on each (docs/machines.md): clients speak to the first node.
#
#   sbatch --nodes 4 packaging/machines.slurm.sh /shared/model.gguf
set -eu
model=$1
here=${TMPDIR:-/tmp}/${model##*/}
echo "for clients: http://$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -1):8080"
srun --ntasks-per-node=1 cp "$model" "$here" # the same path on every node, and a disk of its own
srun --mpi=pmix --cpu-bind=none hunch-serve "$here" --host 0.0.0.0 --port 8080 --threads "$SLURM_CPUS_PER_TASK"
