import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import type { KernelOutputs } from '../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  ulp,
  type FormatName,
} from '../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';

/** A kernel's outputs on a problem, as a damage takes and returns them; the problem stays as it is. */
export interface Case {
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  /** The problem's exact attention. */
  readonly reference: () => AttentionReference;
}

/** A way to spoil outputs; null where it changes nothing or does not apply. */
export type Damage = (given: Case) => Case | null;

export function decode(tensor: Tensor): Float64Array {
  return decodeTensor(tensor);
}

export function encode(values: Float64Array, format: FormatName, shape: readonly number[]): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

function withOut(given: Case, values: Float64Array): Case | null {
  const { out } = given.outputs;
  const changed = encode(values, out.format, out.shape);
  const before = decode(out);
  const after = decode(changed);
  if (after.every((x, i) => Object.is(x, before[i]))) return null;
  return { ...given, outputs: { ...given.outputs, out: changed } };
}

function mapOut(change: (values: Float64Array, given: Case) => Float64Array): Damage {
  return (given) => withOut(given, change(decode(given.outputs.out), given));
}

function mapLse(change: (lse: number) => number): Damage {
  return (given) => {
    const { lse } = given.outputs;
    if (lse === null) return null;
    return {
      ...given,
      outputs: { ...given.outputs, lse: encode(decode(lse).map(change), lse.format, lse.shape) },
    };
  };
}

const exact = {
  accuracy: { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: 2 ** -40 },
} as const;

/** How far a number is from the exact one; 0 where both are the same infinity. */
function roundingOf(x: number, exact: number): number {
  return x === exact ? 0 : x - exact;
}

/** The output plus the difference from exact attention to what another computation gives exactly. */
function moved(given: Case, after: Pick<AttentionReference, 'quantities'>): Case | null {
  const before = given.reference();
  const { values: to, magnitude } = after.quantities.out;
  // What sees no key has no rounding of its own to keep.
  const values = decode(given.outputs.out).map((x, i) =>
    magnitude[i] === 0 ? to[i] : x + (to[i] - before.quantities.out.values[i]),
  );
  const { lse } = given.outputs;
  const shifted =
    lse === null
      ? null
      : encode(
          decode(lse).map((x, i) =>
            i < before.quantities.lse.values.length
              ? after.quantities.lse.values[i] + roundingOf(x, before.quantities.lse.values[i])
              : x,
          ),
          lse.format,
          lse.shape,
        );
  const damaged = withOut(given, values);
  return damaged && { ...damaged, outputs: { ...damaged.outputs, lse: shifted } };
}

/**
 * What the kernel would have given, had it computed another problem: its output plus the difference
 * that the change makes in exact arithmetic, O and LSE alike.
 */
export function asIf(change: (problem: Problem) => Problem | null): Damage {
  return (given) => {
    const changed = change(given.problem);
    return changed && moved(given, attentionOracle(changed, exact));
  };
}

/** Keys and values without the rows [begin, end), or with `extra` rows of zeros. */
function editKeys(problem: Problem, keep: (key: number) => boolean, extra: number): Problem {
  const edit = (tensor: Tensor): Tensor => {
    const [heads, keys, dim] = tensor.shape.slice(-3) as [number, number, number];
    const values = decode(tensor);
    const rows: number[] = [];
    for (let h = 0; h < heads; h++) {
      for (let j = 0; j < keys; j++)
        if (keep(j)) rows.push(...values.subarray((h * keys + j) * dim, (h * keys + j + 1) * dim));
      rows.push(...new Array<number>(extra * dim).fill(0));
    }
    return encode(Float64Array.from(rows), tensor.format, [heads, rows.length / heads / dim, dim]);
  };
  return { ...problem, k: edit(problem.k), v: edit(problem.v) };
}

/** Keys and values with the rows [begin, end) once more at the end. */
function repeatKeys(problem: Problem, begin: number, end: number): Problem {
  const repeat = (tensor: Tensor): Tensor => {
    const [heads, keys, dim] = tensor.shape.slice(-3) as [number, number, number];
    const values = decode(tensor);
    const rows: number[] = [];
    for (let h = 0; h < heads; h++) {
      rows.push(...values.subarray(h * keys * dim, (h + 1) * keys * dim));
      rows.push(...values.subarray((h * keys + begin) * dim, (h * keys + end) * dim));
    }
    return encode(Float64Array.from(rows), tensor.format, [heads, rows.length / heads / dim, dim]);
  };
  return { ...problem, k: repeat(problem.k), v: repeat(problem.v) };
}

const tile = 128;

/** Every way to spoil an output that the audit must see, by name. */
export const damages: Readonly<Record<string, Damage>> = {
  'O × 1.01': mapOut((out) => out.map((x) => x * 1.01)),
  'O × 0.99 on one head': mapOut((out, { problem }) => {
    const { heads } = problemShape(problem);
    const size = out.length / heads;
    return out.map((x, i) => (Math.floor(i / size) === heads - 1 ? x * 0.99 : x));
  }),
  'row sum 0.9 % too large, in the LSE too': (given) => {
    const scaled = mapOut((out) => out.map((x) => x / 1.009))(given);
    return scaled && mapLse((lse) => lse + Math.log(1.009))(scaled);
  },
  'O + 0.01 of its largest': mapOut((out) => {
    const largest = out.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    return out.map((x) => x + 0.01 * largest);
  }),
  'two neighbouring rows swapped': mapOut((out, { problem }) => {
    const { queries, vDim } = problemShape(problem);
    const row = Math.floor(queries / 2) * vDim;
    const swapped = out.slice();
    swapped.set(out.subarray(row, row + vDim), row + vDim);
    swapped.set(out.subarray(row + vDim, row + 2 * vDim), row);
    return swapped;
  }),
  'rows rotated by 8 in each 32': mapOut((out, { problem }) => {
    const { vDim } = problemShape(problem);
    return out.map((_, i) => {
      const row = Math.floor(i / vDim);
      return out[(row - (row % 32) + (((row % 32) + 8) % 32)) * vDim + (i % vDim)] ?? out[i];
    });
  }),
  '8 columns rotated in each 16': mapOut((out) =>
    out.map((_, i) => out[i - (i % 16) + (((i % 16) + 8) % 16)]),
  ),
  // The second tile, masked by making its scores unreachable would change its V; it is cut out.
  'one 128-key tile dropped': (given) => {
    const { keys } = problemShape(given.problem);
    const { causal, window } = given.problem;
    if (keys <= tile) return null;
    // With a causal mask the cut must not move the diagonal, which is aligned to the last key.
    if (!causal && window === null)
      return asIf((problem) => editKeys(problem, (j) => j < tile || j >= 2 * tile, 0))(given);
    return dropTile(given);
  },
  'a 64-key tile counted twice': asIf((problem) =>
    problem.causal ? null : repeatKeys(problem, 64, 128),
  ),
  'scale applied twice': asIf((problem) => ({ ...problem, scale: problem.scale ** 2 })),
  'tail keys counted as zeros': asIf((problem) => {
    const { keys } = problemShape(problem);
    const extra = (tile - (keys % tile)) % tile;
    return extra === 0 || problem.causal ? null : editKeys(problem, () => true, extra);
  }),
  'last row zero': mapOut((out, { problem }) =>
    out.fill(0, out.length - problemShape(problem).vDim),
  ),
  'one element off by 4 ulp': (given) => {
    const { problem, outputs } = given;
    const { queries, vDim } = problemShape(problem);
    const query = Math.floor(queries / 2);
    const key = heaviestKey(problem, query);
    const v = decode(problem.v);
    const out = decode(outputs.out);
    const column = 5 % vDim;
    out[query * vDim + column] += 4 * ulp(formats[outputs.out.format], v[key * vDim + column]);
    return withOut(given, out);
  },
  'LSE + 0.01': mapLse((lse) => lse + 0.01),
  'LSE in base 2': mapLse((lse) => lse / Math.LN2),
  "V's sign lost on one key": asIf((problem) => {
    const { keys, vDim } = problemShape(problem);
    const key = Math.floor(keys / 2);
    const v = decode(problem.v).map((x, i) =>
      Math.floor(i / vDim) % keys === key ? Math.abs(x) : x,
    );
    return { ...problem, v: encode(v, problem.v.format, problem.v.shape) };
  }),
  'causal limit one too far': asIf((problem) =>
    problem.causal ? { ...problem, causal: false, window: { left: -1, right: 1 } } : null,
  ),
  'causal limit one short': asIf(shortCausal),
};

/** Causes that the diagnosis may name for a damage, besides `unexplained`; a wrong one never. */
export const causes: Readonly<Record<keyof typeof damages, readonly string[]>> = {
  'O × 1.01': ['output-scale'],
  'O × 0.99 on one head': ['output-scale'],
  'row sum 0.9 % too large, in the LSE too': ['row-sum-scale'],
  'O + 0.01 of its largest': ['output-offset'],
  'two neighbouring rows swapped': ['rows-permuted'],
  'rows rotated by 8 in each 32': ['rows-permuted'],
  '8 columns rotated in each 16': ['columns-permuted'],
  'one 128-key tile dropped': ['key-tile-missing'],
  'a 64-key tile counted twice': ['key-tile-twice'],
  'tail keys counted as zeros': ['tail-keys-counted'],
  'last row zero': ['last-query-not-written'],
  'one element off by 4 ulp': [],
  'scale applied twice': ['scale-twice'],
  'LSE + 0.01': ['lse-offset'],
  'LSE in base 2': ['lse-base-2'],
  "V's sign lost on one key": ['value-of-one-key'],
  'causal limit one too far': ['causal-limit-late'],
  'causal limit one short': ['causal-limit-early'],
};

/** The key with the largest score for one query of the first head, among those it sees. */
function heaviestKey(problem: Problem, query: number): number {
  const { keys, queries, qkDim } = problemShape(problem);
  const q = decode(problem.q);
  const k = decode(problem.k);
  let best = 0;
  let bestScore = -Infinity;
  for (let j = 0; j < keys; j++) {
    if (problem.causal && j > query + keys - queries) break;
    let score = 0;
    for (let t = 0; t < qkDim; t++) score += q[query * qkDim + t] * k[j * qkDim + t];
    if (score * Math.sign(problem.scale) > bestScore) {
      bestScore = score * Math.sign(problem.scale);
      best = j;
    }
  }
  return best;
}

/**
 * The first 128 keys dropped under a causal mask: later queries see what is left, and the first 128
 * each the key on their diagonal alone.
 */
function dropTile(given: Case): Case | null {
  const { problem } = given;
  const { queries, keys, vDim } = problemShape(problem);
  if (queries !== keys) return null;
  const diagonal = { ...problem, causal: false, window: { left: 0, right: 0 } };
  const first = attentionOracle(diagonal, exact);
  const after = attentionOracle(
    editKeys(problem, (key) => key >= tile, 0),
    exact,
  );
  for (let row = 0; row < after.quantities.lse.values.length; row += queries) {
    after.quantities.out.values.set(
      first.quantities.out.values.subarray(row * vDim, (row + tile) * vDim),
      row * vDim,
    );
    after.quantities.lse.values.set(first.quantities.lse.values.subarray(row, row + tile), row);
  }
  return moved(given, after);
}

/** The diagonal dropped where queries and keys are as many: rows see keys j < i. */
function shortCausal(problem: Problem): Problem | null {
  const { queries, keys } = problemShape(problem);
  if (!problem.causal || queries !== keys) return null;
  return editKeys(problem, (key) => key < keys - 1, 0);
}
