import { createFa4Forward, type Fa4Configuration } from '../../kernels/fa4/index.js';
import type { PreparedProgram } from '../../kernels/fa4/program/index.js';
import { encodeFromFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Finding } from '../../src/machine/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';

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

/** Numbers from 0 to 1 of a linear congruence: the same for the same seed. */
function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A problem of roughly normal numbers. */
export function randomProblem(options: ProgramProblem): Problem {
  const { heads, kvHeads = heads, queries, keys, dims, format = 'bf16' } = options;
  const { causal = false, window = null, spread = 4, seed = 1 } = options;
  const random = uniform(seed);
  const tensor = (shape: readonly number[], size: number): Tensor => {
    const length = shape.reduce((a, b) => a * b, 1);
    const values = Float64Array.from(
      { length },
      () => 2 * size * (random() + random() + random() - 1.5),
    );
    return { format, shape, data: encodeFromFloat64(formats[format], values) };
  };
  return {
    q: tensor([heads, queries, dims[0]], spread),
    k: tensor([kvHeads, keys, dims[0]], 1),
    v: tensor([kvHeads, keys, dims[1]], 1),
    scale: 1 / Math.sqrt(dims[0]),
    causal,
    window,
    softcap: null,
  };
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
