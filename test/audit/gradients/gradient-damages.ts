import { attentionGradients, attentionOracle } from '../../../oracles/index.js';
import { decodeTensor, formats, ulp } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { encode } from '../damage.js';
import type { GradientCase, GradientValues, Judged } from './gradient-case.js';

/** Exact gradients as a kernel with a fault would have them, and the causes that may be named for it. */
export interface GradientDamage {
  readonly values: (given: GradientCase) => Partial<GradientValues>;
  /** Which gradients must fail. */
  readonly fails: readonly Judged[];
  readonly causes: readonly string[];
}

function withExact(given: GradientCase, changed: Partial<GradientValues>): GradientValues {
  return { ...given.exact, ...changed };
}

/** dS of textbook attention in fp64, [head][query][key], and P, by other row sums D where that is asked for. */
function softmaxGradient(
  { problem, dout }: GradientCase,
  meanOf: (means: Float64Array, row: number) => number = (means, row) => means[row],
) {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v, o] = [problem.q, problem.k, problem.v, dout].map((one) => decodeTensor(one));
  const { lse } = attentionOracle(problem).quantities;
  const isSeen = (query: number, key: number) => !problem.causal || key <= query + keys - queries;
  const weights = new Float64Array(batch * heads * queries * keys);
  const dp = new Float64Array(weights.length);
  const means = new Float64Array(batch * heads * queries);
  const keyRow = (head: number) =>
    (Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize)) * keys;
  const dot = (a: Float64Array, at: number, b: Float64Array, from: number, size: number) => {
    let sum = 0;
    for (let c = 0; c < size; c++) sum += a[at * size + c] * b[from * size + c];
    return sum;
  };
  for (let row = 0; row < means.length; row++)
    for (let j = 0; j < keys; j++) {
      if (!isSeen(row % queries, j)) continue;
      const key = keyRow(Math.floor(row / queries)) + j;
      const at = row * keys + j;
      weights[at] = Math.exp(problem.scale * dot(q, row, k, key, qkDim) - lse.values[row]);
      dp[at] = dot(o, row, v, key, vDim);
      means[row] += weights[at] * dp[at];
    }
  const ds = weights.map((p, at) => {
    const row = Math.floor(at / keys);
    return p * (dp[at] - meanOf(means, row));
  });
  return { shape, q, k, ds, keyRow };
}

/** dQ and dK of some dS, which may differ between the two. */
function fromScores(given: GradientCase, made: ReturnType<typeof softmaxGradient>) {
  const { shape, q, k, ds, keyRow } = made;
  const { queries, keys, qkDim } = shape;
  const dq = new Float64Array(given.exact.dq.length);
  const dk = new Float64Array(given.exact.dk.length);
  ds.forEach((x, at) => {
    if (x === 0) return;
    const row = Math.floor(at / keys);
    const key = keyRow(Math.floor(row / queries)) + (at % keys);
    for (let c = 0; c < qkDim; c++) {
      dq[row * qkDim + c] += given.problem.scale * x * k[key * qkDim + c];
      dk[key * qkDim + c] += given.problem.scale * x * q[row * qkDim + c];
    }
  });
  return { dq, dk };
}

/** The same problem's gradients with dO of some rows left out. */
function withoutRows(
  { problem, dout }: GradientCase,
  isLeftOut: (row: number) => boolean,
  wanted: readonly Judged[],
) {
  const columns = dout.shape.at(-1)!;
  const values = decodeTensor(dout).map((x, i) => (isLeftOut(Math.floor(i / columns)) ? 0 : x));
  const found = attentionGradients(problem, encode(values, 'fp64', dout.shape), { wanted });
  return Object.fromEntries(wanted.map((name) => [name, found[name]!.values]));
}

function scaled(names: readonly Judged[], factor: (problem: Problem) => number) {
  return (given: GradientCase) =>
    withExact(
      given,
      Object.fromEntries(
        names.map((name) => [name, given.exact[name].map((x) => x * factor(given.problem))]),
      ),
    );
}

/** One gradient with some elements changed. */
function changed(
  name: Judged,
  change: (values: Float64Array, columns: number, rows: number) => void,
) {
  return (given: GradientCase) => {
    const values = given.exact[name].slice();
    change(values, given.shapes[name][3], given.shapes[name][2]);
    return withExact(given, { [name]: values });
  };
}

/** Faults of a backward pass, by name. Problems are square, of 144 queries, causal or not, in groups of two heads. */
export const gradientDamages: Readonly<Record<string, GradientDamage>> = {
  'dQ 1 % large': { values: scaled(['dq'], () => 1.01), fails: ['dq'], causes: ['factor'] },
  'dK 1 % small': { values: scaled(['dk'], () => 0.99), fails: ['dk'], causes: ['factor'] },
  'dV 1 % large': { values: scaled(['dv'], () => 1.01), fails: ['dv'], causes: ['factor'] },
  'no scale in dQ and dK': {
    values: scaled(['dq', 'dk'], ({ scale }) => 1 / scale),
    fails: ['dq', 'dk'],
    causes: ['scale-missing'],
  },
  'the scale twice in dK': {
    values: scaled(['dk'], ({ scale }) => scale),
    fails: ['dk'],
    causes: ['scale-twice'],
  },
  'no delta': {
    values: (given) =>
      withExact(
        given,
        fromScores(
          given,
          softmaxGradient(given, () => 0),
        ),
      ),
    fails: ['dq', 'dk'],
    causes: ['delta-missing'],
  },
  'delta of the row before': {
    values: (given) => {
      const { queries } = problemShape(given.problem);
      const before = (means: Float64Array, row: number) =>
        row % queries === 0 ? means[row] : means[row - 1];
      return withExact(given, fromScores(given, softmaxGradient(given, before)));
    },
    fails: ['dq', 'dk'],
    causes: ['delta-previous-row'],
  },
  'delta of 20 rows stale': {
    values: (given) => {
      const stale = (means: Float64Array, row: number) =>
        row >= 100 && row < 120 ? 0.5 * means[row] + 0.3 : means[row];
      return withExact(given, fromScores(given, softmaxGradient(given, stale)));
    },
    fails: ['dq'],
    causes: ['delta-wrong'],
  },
  '64 keys missing in dQ': {
    values: (given) => {
      const made = softmaxGradient(given);
      const { keys } = made.shape;
      const ds = made.ds.map((x, at) => (at % keys >= 64 && at % keys < 128 ? 0 : x));
      return withExact(given, { dq: fromScores(given, { ...made, ds }).dq });
    },
    fails: ['dq'],
    causes: ['key-tile-missing'],
  },
  '64 keys twice in dQ of 64 queries': {
    values: (given) => {
      const made = softmaxGradient(given);
      const { keys } = made.shape;
      const ds = made.ds.map((x, at) => {
        const [row, key] = [Math.floor(at / keys), at % keys];
        return row >= 64 && row < 128 && key < 64 ? 2 * x : x;
      });
      return withExact(given, { dq: fromScores(given, { ...made, ds }).dq });
    },
    fails: ['dq'],
    causes: ['key-tile-twice'],
  },
  '64 queries missing in dK and dV': {
    values: (given) => {
      const { queries } = problemShape(given.problem);
      const isLeftOut = (row: number) => row % queries >= 64 && row % queries < 128;
      return withExact(given, withoutRows(given, isLeftOut, ['dk', 'dv']));
    },
    fails: ['dk', 'dv'],
    causes: ['query-tile-missing'],
  },
  'one head of a group only': {
    values: (given) => {
      const { queries } = problemShape(given.problem);
      const isLeftOut = (row: number) => Math.floor(row / queries) % 2 === 1;
      return withExact(given, withoutRows(given, isLeftOut, ['dk', 'dv']));
    },
    fails: ['dk', 'dv'],
    causes: ['group-one-head'],
  },
  'LSE in base 2': {
    values: ({ problem, dout }) => {
      const { lse } = attentionOracle(problem).quantities;
      const columns = dout.shape.at(-1)!;
      const factored = decodeTensor(dout).map((x, i) => {
        const natural = lse.values[Math.floor(i / columns)];
        return x * Math.exp(natural - natural * Math.LOG2E);
      });
      const { dq, dk, dv } = attentionGradients(problem, encode(factored, 'fp64', dout.shape));
      return { dq: dq!.values, dk: dk!.values, dv: dv!.values };
    },
    fails: ['dq', 'dk', 'dv'],
    causes: ['lse-base-2'],
  },
  '4 ulp on an element of dQ': {
    values: changed('dq', (values) => {
      const at = values.indexOf(values.reduce((a, x) => (Math.abs(x) > Math.abs(a) ? x : a), 0));
      values[at] += 4 * ulp(formats.bf16, values[at]);
    }),
    fails: ['dq'],
    causes: ['unexplained'],
  },
  'a block of 8 × 8 of dK transposed': {
    values: changed('dk', (values, columns) => {
      for (let i = 0; i < 8; i++)
        for (let j = 0; j < i; j++) {
          const [a, b] = [(16 + i) * columns + j, (16 + j) * columns + i];
          [values[a], values[b]] = [values[b], values[a]];
        }
    }),
    fails: ['dk'],
    causes: ['block-transposed'],
  },
  'the sign of a column of dV': {
    values: changed('dv', (values, columns) => {
      for (let i = 3; i < values.length; i += columns) values[i] = -values[i];
    }),
    fails: ['dv'],
    causes: ['column-sign'],
  },
  'half of the last tile of dQ zero': {
    values: changed('dq', (values, columns, rows) => {
      values.fill(0, (rows - 32) * columns, rows * columns);
    }),
    fails: ['dq'],
    causes: ['rows-zero'],
  },
  'heads of dK exchanged': {
    values: changed('dk', (values) => {
      const half = values.length / 2;
      const first = values.slice(0, half);
      values.copyWithin(0, half);
      values.set(first, half);
    }),
    fails: ['dk'],
    causes: ['heads-moved'],
  },
};
