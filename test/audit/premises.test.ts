import { describe, expect, it } from 'vitest';
import { drawProblem } from './declared-problems.js';
import {
  declarationFlags,
  judgeOutputs,
  parseDeclaration,
  premiseNames,
  premisePresets,
  premiseWords,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import { checkKernel, modelPromises, type KernelPromises } from '../../properties/index.js';
import { formats, round } from '../../src/formats/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { fromEnvironment, sampled, scaled, testSeed } from '../setup/effort.js';
import { expectAttention } from '../setup/expect-attention.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';
import { runPlainKernel, toFormat, type PlainArithmetic } from './declared-kernel.js';

const inTurn = turns(import.meta.url);

/** One kind of kernel: what it does, and what it says of it. */
interface Kind {
  readonly declared: PremiseDeclaration;
  readonly changes: (problem: Problem, seed: number) => Partial<PlainArithmetic>;
  readonly promises?: KernelPromises;
  /** The most that one of its operations on sums may lose to underflow, where that is more than of fp32. */
  readonly loss?: number;
}

/** The cubic polynomial of 2^x on [−1, 0], and beyond by its exponent. */
function cubic(x: number): number {
  const y = x * Math.LOG2E;
  const f = y - Math.floor(y);
  const p =
    1 +
    f *
      (0.695146143436431884765625 +
        f * (0.227564394474029541015625 + f * 0.077119089663028717041015625));
  return Math.fround(p * 2 ** Math.floor(y));
}

function stochastic(format: 'bf16' | 'fp16', seed: number): (x: number) => number {
  let state = seed >>> 0;
  return (x) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const low = round(formats[format], x, { rounding: 'down' });
    const high = round(formats[format], x, { rounding: 'up' });
    return low === high || state / 2 ** 32 >= (x - low) / (high - low) ? low : high;
  };
}

const formatOf = ({ q }: Problem) => q.format as 'bf16' | 'fp16';
const fewScores = { raw: 2 ** 15, scaled: 2 ** 15 };

const kinds: Readonly<Record<string, Kind>> = {
  'scores and P in the format of the input': {
    declared: { scores: 'input', weights: 'input' },
    changes: (problem) => ({ score: toFormat(formatOf(problem)), dividesFirst: true }),
    promises: { scoreLimit: fewScores },
  },
  'P in fp16 for bf16 values': {
    declared: { weights: 'fp16' },
    changes: () => ({ weight: toFormat('fp16') }),
  },
  'Q rounded after it is scaled': {
    declared: { scale: 'q-before-rounding' },
    changes: (problem) => ({
      scoreScale: 1,
      query: (x) => round(formats[formatOf(problem)], x * problem.scale),
    }),
  },
  'the root of the scale on Q and K': {
    declared: { scale: 'root-of-both' },
    changes: (problem) => {
      const root = Math.sqrt(problem.scale);
      const half = (x: number) => round(formats[formatOf(problem)], x * root);
      return { scoreScale: 1, query: half, key: half };
    },
  },
  'sums in fp16': {
    declared: { qkAccumulator: 'fp16', pvAccumulator: 'fp16' },
    changes: () => ({ dotSum: toFormat('fp16'), valueSum: toFormat('fp16') }),
    promises: { scoreLimit: fewScores },
    loss: 2 ** -25,
  },
  'a row sum of rounded weights': {
    declared: { rowSum: 'after-rounding' },
    changes: () => ({ sumsRounded: true }),
  },
  'partial results in bf16': {
    declared: { partials: 'bf16' },
    changes: () => ({ split: 48, partial: toFormat('bf16') }),
  },
  'an output rounded by chance': {
    declared: { outputRounding: 'stochastic' },
    changes: (problem, seed) => ({ output: stochastic(formatOf(problem), seed) }),
  },
  'a truncated output': {
    declared: { outputRounding: 'truncated' },
    changes: (problem) => ({
      output: (x) => round(formats[formatOf(problem)], x, { rounding: 'toward-zero' }),
    }),
  },
  'a maximum shared by eight rows': {
    declared: { maximum: 'group' },
    changes: () => ({ maximum: 'group' }),
    promises: { scoreLimit: { raw: 64, scaled: 16 } },
  },
  'no maximum': {
    declared: { maximum: 'none', scoreLimit: 8 },
    changes: () => ({ maximum: 'none' }),
    promises: { scoreLimit: { raw: 64, scaled: 8 } },
  },
  'a cubic exponential, in factors too': {
    declared: { factors: 'as-weights' },
    changes: () => ({ exp: cubic, factor: cubic, tile: 32 }),
  },
};

const audits = fromEnvironment('PREMISE_AUDITS', scaled(2));
const checkRuns = fromEnvironment('PREMISE_RUNS', scaled(1));
/** Every kind where more is asked for than a sample. */
const tried =
  process.env['PREMISE_AUDITS'] === undefined ? sampled(Object.keys(kinds), 1) : Object.keys(kinds);

describe.each(tried)('a kernel with %s', (name) => {
  const { declared, changes, promises, loss } = kinds[name];
  inTurn(
    'passes audits once it says so',
    () => {
      for (let i = 0; i < audits; i++) {
        const problem = drawProblem(testSeed + i, i, promises?.scoreLimit?.scaled ?? Infinity);
        const outputs = runPlainKernel(problem, () => changes(problem, testSeed + i));
        const drawn = `drawProblem(${testSeed + i}, ${i})`;
        expectAttention(problem, outputs, { premises: declared, loss, name: drawn });
      }
    },
    7_200_000,
  );

  inTurn(
    'passes the suite once it says so',
    async () => {
      const result = await checkKernel(
        (problem) => runPlainKernel(problem, () => changes(problem, 1)),
        {
          ...promises,
          premises: declared,
          laws: { determinism: 'bits', exact: 'bound', 'exact-exp2': 'none' },
          sizes: { queries: { max: 40 }, keys: { max: 100 } },
        },
        { runs: checkRuns, seed: testSeed, shrinkSeconds: 1 },
      );
      const failures = result.laws.flatMap(({ id, failure }) =>
        failure === null ? [] : [`${id}: ${failure.statement}`],
      );
      expect(failures, `seed ${testSeed}`).toEqual([]);
    },
    7_200_000,
  );
});

describe('a kernel that says nothing', () => {
  const size = { heads: 1, queries: 64, keys: 128, dim: 64 };
  inTurn.each([
    ['scores and P in the format of the input', '--premise scores=bf16'],
    ['the root of the scale on Q and K', '--premise scale=root-of-both'],
    ['a truncated output', '--premise outputRounding=truncated'],
  ])('is told what %s would be declared as', (kind, flags) => {
    const problem = drawProblem(11, 0, Infinity, size);
    const outputs = runPlainKernel(problem, () => kinds[kind].changes(problem, 1));
    const { verdict } = judgeOutputs(problem, outputs);
    expect(verdict.pass).toBe(false);
    expect(verdict.premise?.flags).toBe(flags);
    expect(verdict.sentence).toContain(flags);
  });

  inTurn('is told nothing where its errors are unlike those of any', () => {
    const problem = drawProblem(12, 0, Infinity, size);
    const outputs = runPlainKernel(problem, () => ({}));
    const lse = decode(outputs.lse!).map((x) => x + 0.005);
    const moved = { ...outputs, lse: encode(lse, 'fp32', outputs.lse!.shape) };
    const { verdict } = judgeOutputs(problem, moved);
    expect(verdict.pass).toBe(false);
    expect(verdict.premise).toBeNull();
  });

  it('is told that its fp32 output holds bf16 numbers', () => {
    const problem = drawProblem(13, 0, Infinity, size);
    const outputs = runPlainKernel(problem, () => ({}));
    const wide = encode(decode(outputs.out), 'fp32', outputs.out.shape);
    const { verdict } = judgeOutputs(problem, { ...outputs, out: wide });
    expect(verdict.notes.join()).toContain('every fp32 output is a number of bf16');
  });
});

describe('the vocabulary', () => {
  it('parses what its flags print, value by value', () => {
    for (const name of premiseNames)
      for (const value of premiseWords[name].values) {
        const declared = parseDeclaration(`${name}=${value}`, 'it');
        expect(declared).toEqual({ [name]: value });
        expect(declarationFlags(declared)).toBe(`--premise ${name}=${value}`);
      }
    expect(parseDeclaration('eager,exponential=1e-4', 'it')).toEqual({
      ...premisePresets['eager'].premises,
      exponential: 1e-4,
    });
  });

  it.each(['scores=bf17', 'scors=bf16', 'nonsense', 'exponential=2', 'scoreLimit=-1'])(
    'refuses %s on one line',
    (text) => {
      expect(() => parseDeclaration(text, 'metadata premises')).toThrow(
        /^metadata premises [^\n]*; [^\n]*(give|the premises are)[^\n]*$/,
      );
    },
  );

  it('is that of the models, which promise as they are judged', () => {
    for (const model of ['fa4', 'naive-fp32', 'naive-input'])
      expect(modelPromises(model).promises.premises).toBeDefined();
    expect(problemShape(drawProblem(1, 0)).heads).toBeGreaterThan(0);
  });
});
