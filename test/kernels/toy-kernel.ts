import {
  attributeLumped,
  checkKeys,
  exactLaws,
  kernelModel,
  largestScore32,
  numberValue,
  roundoff32,
  scaleErrorOf,
  type KernelArithmetic,
  type KernelModel,
  type KernelSetting,
  type KernelSettings,
  type UnroundedRows,
} from '../../kernels/index.js';
import {
  decodeToFloat32,
  encodeFromFloat64,
  formats,
  patternsOf,
} from '../../src/formats/index.js';
import { keysOf, problemMask, problemShape, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

const { fround } = Math;
const defaultBlockKeys = 16;

const settings: readonly KernelSetting[] = [
  { key: 'blockKeys', description: `keys of a block (default ${defaultBlockKeys})` },
];

/** Keys of a block, the toy's one setting. @throws RequestError for another setting or no whole number */
function blockKeysOf(texts: KernelSettings): number {
  checkKeys('toy', settings, texts);
  const text = texts.get('blockKeys');
  const blockKeys = text === undefined ? defaultBlockKeys : numberValue('blockKeys', text);
  if (!(Number.isSafeInteger(blockKeys) && blockKeys > 0))
    throw new RequestError(`blockKeys is ${blockKeys}; give a whole number from 1`);
  return blockKeys;
}

/** @throws RequestError for a softcap and for fp64 inputs */
function checkProblem(problem: Problem): void {
  if (problem.softcap !== null)
    throw new RequestError('the toy model has no softcap; leave it out');
  for (const name of ['q', 'k', 'v'] as const)
    if (problem[name].format === 'fp64')
      throw new RequestError(`${name} is fp64; the toy model takes fp32 or shorter`);
}

/**
 * Attention with every operation rounded to fp32 and exp rounded once: the row's maximum, then sums of
 * weights and of P·V block by block, in each key by key, and the blocks' sums added from the last to the
 * first. The output is divided once, at the end. A piece is a head.
 */
function runHead(problem: Problem, blockKeys: number, head: number): UnroundedRows {
  const shape = problemShape(problem);
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map(({ data, format }) =>
    decodeToFloat32(data, formats[format]),
  );
  const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const mask = problemMask(problem, shape);
  const scale = fround(problem.scale);
  const out = new Float64Array(queries * vDim);
  const lse = new Float64Array(queries).fill(-Infinity);

  const scoreOf = (query: number, key: number): number => {
    const [row, column] = [(head * queries + query) * qkDim, (kv * keys + key) * qkDim];
    let sum = 0;
    for (let t = 0; t < qkDim; t++) sum = fround(sum + fround(q[row + t] * k[column + t]));
    return fround(sum * scale);
  };

  for (let query = 0; query < queries; query++) {
    const visible = [...keysOf(mask.ranges(head, query))];
    if (visible.length === 0) continue;
    const scores = visible.map((key) => scoreOf(query, key));
    const largest = scores.reduce((a, b) => Math.max(a, b));
    // The sum of weights stands behind the vDim sums of P·V.
    const total = new Float32Array(vDim + 1);
    const blocks = new Set(visible.map((key) => Math.floor(key / blockKeys)));
    for (const block of [...blocks].reverse()) {
      const partial = new Float32Array(vDim + 1);
      visible.forEach((key, j) => {
        if (Math.floor(key / blockKeys) !== block) return;
        const weight = fround(Math.exp(fround(scores[j] - largest)));
        for (let c = 0; c < vDim; c++)
          partial[c] += fround(weight * v[(kv * keys + key) * vDim + c]);
        partial[vDim] += weight;
      });
      for (let c = 0; c <= vDim; c++) total[c] += partial[c];
    }
    for (let c = 0; c < vDim; c++) out[query * vDim + c] = fround(total[c] / total[vDim]);
    lse[query] = fround(largest + fround(Math.log(total[vDim])));
  }
  return { out, lse };
}

/** Everything is fp32, so that an operation errs by half an ulp; exp and log are rounded from fp64. */
function arithmetic(problem: Problem): KernelArithmetic {
  checkProblem(problem);
  const { keys } = problemShape(problem);
  const scaleError = scaleErrorOf(problem.scale);
  const roundedOnce = roundoff32 * (1 + 2 ** -20);
  return {
    description: 'toy: fp32, sums by blocks',
    scores: { kind: 'sequential' },
    scaleError,
    largestScore: largestScore32,
    scoreLimit: Infinity,
    exponent: {
      ofDistance: roundoff32,
      ofScore: (roundoff32 + Math.abs(scaleError)) * (1 + 2 ** -6),
      common: 0,
      ofSoftcap: 0,
      absolute: 2 ** -149,
    },
    exponential: {
      hardware: roundedOnce,
      polynomial: 0,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    // Known beforehand, and the output is divided at the end.
    maximum: { kind: 'online', blockKeys: Math.max(keys, 1), threshold: 0, offset: 0 },
    weightFormat: 'fp32',
    overflow: 'fault',
    // A product, the additions within its block and those of the blocks, in whatever order.
    values: { kind: 'any-order', perProduct: 2 ** -23, ofOperands: 0, smallestOperand: 0 },
    rowSumAdditions: 0,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: { normalise: roundoff32, logarithm: roundedOnce, elementwise: roundoff32 },
    outputFormat: problem.q.format,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    underflow: { weights: 2 ** -149, sums: 2 ** -149 },
  };
}

function prepared(problem: Problem, texts: KernelSettings) {
  checkProblem(problem);
  const blockKeys = blockKeysOf(texts);
  const shape = problemShape(problem);
  return {
    shape,
    outFormat: problem.q.format,
    pieces: shape.batch * shape.heads,
    settings: { blockKeys },
    unrounded: (head: number) => runHead(problem, blockKeys, head),
  };
}

/** A small kernel of its own: what one writes to add a kernel, all of it. */
export const toyModel: KernelModel = kernelModel({
  name: 'toy',
  description: 'fp32 attention whose sums are formed block by block',
  settings,
  features: ['mask', 'segments', 'prefix', 'blockMask'],
  prepare: (problem, texts) => {
    const { unrounded, ...kernel } = prepared(problem, texts);
    const format = formats[kernel.outFormat];
    return {
      ...kernel,
      evidence: ['fp32 operations: IEEE 754', 'exp, log: fp64, rounded once'],
      run: (head) => {
        const { out, lse } = unrounded(head);
        return {
          firstRow: head * kernel.shape.queries,
          rows: kernel.shape.queries,
          out: patternsOf(encodeFromFloat64(format, out), format),
          lse: Float32Array.from(lse),
          rescales: null,
          counters: {},
        };
      },
    };
  },
  attribute: (problem, texts) => {
    const kernel = prepared(problem, texts);
    const rows = kernel.shape.queries;
    return attributeLumped(problem, {
      model: 'toy',
      ...kernel,
      rowsOf: (head) => ({ first: head * rows, rows }),
    });
  },
  arithmetic: (problem, texts) => {
    blockKeysOf(texts);
    return arithmetic(problem);
  },
  premises: () => ({ weights: 'fp32' }),
  promises: (texts) => ({
    formats: ['fp32', 'bf16', 'fp16'],
    scales: ['default', 'odd'],
    lse: true,
    laws: exactLaws,
    blockKeys: blockKeysOf(texts),
    configurations: [{ blockKeys: '1' }, { blockKeys: '64' }],
  }),
  candidates: [{}, { blockKeys: '1' }],
  unlagged: null,
  exponentials: () => [],
  program: null,
  backward: null,
});
