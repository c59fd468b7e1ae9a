import { describe, expect, it } from 'vitest';
import {
  findKernelModel,
  kernelModels,
  runKernelModel,
  type KernelModel,
} from '../../kernels/index.js';
import { scoreProblem } from '../../properties/index.js';
import { featureNames, type FeatureName, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { toyModel } from './toy-kernel.js';

const queries = 6;
const keys = 6;
const plain: Problem = {
  ...scoreProblem('normal-1', { queries, keys, dim: 16, format: 'bf16', seed: 5 }),
  causal: false,
};

const fp32 = (...numbers: number[]) => ({
  format: 'fp32' as const,
  shape: [numbers.length],
  data: Float32Array.from(numbers),
});
const integers = (...numbers: number[]) => ({
  shape: [numbers.length],
  data: Int32Array.from(numbers),
});

/** A feature each, on one head of six queries and keys. */
const withFeature: Readonly<Record<FeatureName, Partial<Problem>>> = {
  mask: { mask: { shape: [keys], data: Uint8Array.of(1, 0, 1, 1, 1, 1) } },
  bias: { bias: fp32(0, 1, 2, 3, 4, 5) },
  alibiSlopes: { alibiSlopes: fp32(0.5) },
  sink: { sink: { logits: fp32(1), inLse: true } },
  segments: {
    segments: { queries: integers(0, 0, 0, 1, 1, 1), keys: integers(0, 0, 0, 1, 1, 1) },
  },
  prefix: { prefix: 3 },
  blockMask: {
    blockMask: {
      counts: { shape: [1, 1, 2], data: Int32Array.of(1, 2) },
      indices: { shape: [1, 1, 2, 2], data: Int32Array.of(0, 0, 1, 0) },
      blockQueries: 3,
      blockKeys: 3,
    },
  },
  keyLists: {
    keyLists: {
      indices: { shape: [1, 2, 1, 3], data: Int32Array.of(4, 0, 1, 5, -1, 2) },
      blockKeys: 1,
      blockQueries: 3,
    },
  },
  dropout: {
    dropout: {
      kept: { shape: [keys], data: Uint8Array.of(1, 0, 1, 1, 1, 1) },
      probability: 0.25,
    },
  },
  sequences: {
    sequences: [
      { firstQuery: 0, queries: 2, firstKey: 0, keys: 4 },
      { firstQuery: 2, queries: 4, firstKey: 4, keys: 2 },
    ],
  },
  keyRanges: { keyRanges: [{ begin: 2, end: 5 }] },
  rows: { rows: { queries: Int32Array.of(0, 2, 4, 6, 8, 9), of: 10 } },
  scales: {
    k: {
      ...plain.k,
      scales: {
        factors: [
          {
            name: 'descale',
            format: 'fp32',
            values: Float64Array.of(0.75),
            shape: [1, 1, 1, 1],
            blocks: [1, 1, keys, 16],
          },
        ],
        precision: 1,
        largest: 0.75,
      },
    },
  },
};
const features = Object.keys(featureNames) as FeatureName[];
const none = new Map<string, string>();

/** What is asked of a model about a problem. */
const requests: Readonly<Record<string, (model: KernelModel, problem: Problem) => unknown>> = {
  prepare: (model, problem) => model.prepare(problem, none),
  attribute: (model, problem) => model.attribute(problem, none),
  arithmetic: (model, problem) => model.arithmetic(problem, none),
  exponentials: (model, problem) => model.exponentials(problem, none),
};

describe.each([...kernelModels, toyModel])('the features of $name', (model) => {
  it.each(features)('%s is taken or refused by name', (feature) => {
    const problem = { ...plain, ...withFeature[feature] };
    const word = featureNames[feature].replace(/^an? /, '');
    for (const [name, request] of Object.entries(requests)) {
      const isTaken =
        model.features.includes(feature) ||
        (name === 'prepare' && (model.emulated ?? []).includes(feature)) ||
        (feature === 'rows' && (name === 'arithmetic' || name === 'exponentials'));
      if (isTaken) expect(() => request(model, problem)).not.toThrow(/takes no/);
      else
        expect(() => request(model, problem)).toThrow(
          new RegExp(`^${model.name} takes no ${word}(;|$)`),
        );
    }
  });
});

it('a program of the machine refuses what it does not take', async () => {
  for (const { name, program: load } of kernelModels) {
    if (load === null) continue;
    const program = await load();
    for (const feature of features.filter((one) => !program.features.includes(one)))
      expect(() => program.prepare({ ...plain, ...withFeature[feature] }, none, {})).toThrow(
        RequestError,
      );
    expect(() => program.prepare({ ...plain, ...withFeature.sink }, none, {})).toThrow(
      `${name} on the machine takes no sink`,
    );
  }
});

it('naive kernels drop a weight by multiplying it by 0, so that a NaN stays one', () => {
  const score = [NaN, 1, 1, 1, 1, 1];
  const one = scoreProblem('normal-1', { queries: 1, keys, dim: 1, format: 'bf16', seed: 5 });
  const k = { ...one.k, data: Uint16Array.from(score, (x) => (x === 1 ? 0x3f80 : 0x7fc0)) };
  const kept = { shape: [1, keys], data: Uint8Array.of(0, 1, 1, 1, 1, 1) };
  const problem: Problem = { ...one, k, causal: false, dropout: { kept, probability: 0.25 } };
  for (const dropped of [
    problem,
    { ...problem, dropout: { kept: { ...kept, data: new Uint8Array(keys) }, probability: 0.25 } },
  ])
    for (const name of ['naive-fp32', 'naive-input']) {
      const { out } = runKernelModel(findKernelModel(name), dropped);
      expect([...out.data].map((bits) => bits & 0x7fff)).toEqual([0x7fff]);
    }
});
