import { createFa4Forward, type Fa4Configuration } from '../../kernels/fa4/index.js';
import type { PreparedProgram } from '../../kernels/fa4/program/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { Finding } from '../../src/machine/index.js';
import type { Problem } from '../../src/problem/index.js';
import { filledProblem, uniformNumbers } from '../setup/problems.js';

export interface ProgramProblem {
  readonly heads: number;
  /** Default: as many as heads. */
  readonly kvHeads?: number;
  readonly queries: number;
  readonly keys: number;
  readonly dims: readonly [number, number];
  readonly format?: FormatName;
  readonly causal?: boolean;
  readonly window?: Problem['window'];
  /** Standard deviation of Q, and so of the scores, and of K and V. */
  readonly spread?: number;
  readonly seed?: number;
}

/** A problem of roughly normal numbers. */
export function randomProblem(options: ProgramProblem): Problem {
  const { heads, kvHeads = heads, queries, keys, dims, format = 'bf16' } = options;
  const { causal = false, window = null, spread = 4, seed = 1 } = options;
  const random = uniformNumbers(seed);
  const roughlyNormal = (size: number) => () => 2 * size * (random() + random() + random() - 1.5);
  return filledProblem(
    { batch: null, heads, kvHeads, queries, keys, dim: dims[0], vDim: dims[1], format },
    { q: roughlyNormal(spread), k: roughlyNormal(1), v: roughlyNormal(1) },
    { causal, window },
  );
}

/** Patterns of an output and fp32 bits of the LSEs. */
export interface ProgramBits {
  readonly out: Uint16Array;
  readonly lse: Uint32Array;
}

/** What the forward's model gives. */
export function forwardBits(
  problem: Problem,
  configuration: Partial<Fa4Configuration> = {},
): ProgramBits {
  const forward = createFa4Forward(problem, { configuration });
  const { batch, heads, queries, vDim } = forward.shape;
  const rows = batch * heads * queries;
  const out = new Uint16Array(rows * vDim);
  const lse = new Float32Array(rows);
  for (let tile = 0; tile < forward.tiles; tile++) {
    const { first } = forward.rowsOf(tile);
    const result = forward.runTile(tile);
    out.set(result.out, first * vDim);
    lse.set(result.lse, first);
  }
  return { out, lse: new Uint32Array(lse.buffer) };
}

function differences(a: Uint16Array | Uint32Array, b: Uint16Array | Uint32Array): number {
  let count = 0;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) count++;
  return count;
}

/** How many outputs and LSEs are not the same bits. */
export function countDifferences(a: ProgramBits, b: ProgramBits): number {
  return differences(a.out, b.out) + differences(a.lse, b.lse);
}

/** What came of all clusters of a program. */
export interface ProgramOutcome {
  readonly findings: readonly Finding[];
  readonly isComplete: boolean;
  /** Outputs and LSEs that are not the forward's. */
  readonly differences: number;
  readonly steps: number;
}

/** A pattern of a 16-bit output, and of an LSE, that no run leaves where it should have written. */
const poison = { out: 0xffff, lse: 0xffff_ffff };

/** Runs all clusters and compares with what should come out. */
export function runProgram(program: PreparedProgram, expected: ProgramBits): ProgramOutcome {
  program.out.fill(poison.out);
  program.lse.fill(poison.lse);
  const runs = Array.from({ length: program.clusters }, (_, cluster) => program.run(cluster));
  return {
    findings: runs.flatMap(({ findings }) => findings),
    isComplete: runs.every(({ isComplete }) => isComplete),
    differences: countDifferences(program, expected),
    steps: runs.reduce((sum, { steps }) => sum + steps, 0),
  };
}
