import { describe, expect, it } from 'vitest';
import {
  onlineSoftmaxHypotheses,
  runOnlineSoftmax,
} from '../../../src/audit/diagnosis/hypotheses/online-softmax-faults.js';
import { narrowHypotheses } from '../../../src/audit/diagnosis/hypotheses/narrow/narrow-faults.js';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type TextbookRow } from './textbook.js';

type Rounding = (x: number) => number;
const exact: Rounding = (x) => x;
const nearest =
  (name: FormatName): Rounding =>
  (x) =>
    round(formats[name], x, { overflow: 'saturate' });

/** An online softmax by its recurrence, with a rounding or a slip at each of its steps. */
interface Steps {
  readonly block: number;
  readonly isBackward: boolean;
  readonly next?: (maximum: number, largest: number) => number;
  readonly p?: (p: number, score: number, maximum: number) => number;
  readonly weight?: Rounding;
  readonly exponent?: Rounding;
  readonly ofOutput?: (factor: number, before: number) => number;
  readonly ofSum?: (factor: number) => number;
  readonly sum?: { readonly key?: Rounding; readonly block?: Rounding };
  readonly accumulator?: { readonly key?: Rounding; readonly block?: Rounding };
  readonly reciprocal?: Rounding;
}

function online(
  scores: Float64Array,
  values: (key: number) => readonly number[],
  steps: Steps,
  { begin = 0, end = scores.length } = {},
): TextbookRow {
  const { weight = exact, exponent = exact, reciprocal = exact } = steps;
  let out = values(0).map(() => 0);
  let [maximum, sum, before] = [-Infinity, 0, 1];
  const blocks: number[][] = [];
  for (let from = begin; from < end; from += steps.block) {
    const keys = Array.from({ length: Math.min(steps.block, end - from) }, (_, i) => from + i);
    if (keys.some((key) => scores[key] > -Infinity)) blocks.push(keys);
  }
  for (const keys of steps.isBackward ? blocks.reverse() : blocks) {
    const largest = Math.max(maximum, ...keys.map((key) => scores[key]));
    const next = maximum === -Infinity ? largest : (steps.next?.(maximum, largest) ?? largest);
    const factor = maximum === -Infinity ? 1 : Math.exp(maximum - next);
    const ofOutput = steps.ofOutput?.(factor, before) ?? factor;
    out = out.map((x) => x * ofOutput);
    sum *= steps.ofSum?.(factor) ?? factor;
    [maximum, before] = [next, factor];
    for (const key of keys) {
      if (scores[key] === -Infinity) continue;
      const plain = 2 ** exponent((scores[key] - maximum) * Math.LOG2E);
      const p = steps.p?.(plain, scores[key], maximum) ?? plain;
      sum = (steps.sum?.key ?? exact)(sum + p);
      const v = values(key);
      out = out.map((x, c) => (steps.accumulator?.key ?? exact)(x + weight(p) * v[c]));
    }
    out = out.map(steps.accumulator?.block ?? exact);
    sum = (steps.sum?.block ?? exact)(sum);
  }
  if (maximum === -Infinity) return { out: Float64Array.from(out), lse: -Infinity };
  const inverse = reciprocal(1 / sum);
  return { out: Float64Array.from(out, (x) => x * inverse), lse: maximum + Math.log(sum) };
}

const random = pseudorandom(3);
const draw = () => 3 * random();
const problemOf = (format: FormatName, keys = 40) =>
  filledProblem({ heads: 1, queries: 4, keys, dim: 2, format }, draw, {
    scale: 1,
    causal: true,
  });
type Problem = ReturnType<typeof problemOf>;

/** Checks a hypothesis on every row against the recurrence. */
function expectOnline(
  problem: Problem,
  family: typeof narrowHypotheses,
  cases: Readonly<Record<string, Steps>>,
): void {
  const book = new Textbook(problem);
  const context = contextOfFault(problem);
  const found = hypothesesOf(family, context);
  for (const [name, steps] of Object.entries(cases)) {
    expect([...found.keys()]).toContain(name);
    expectPredicts(found.get(name)!, context, (row) => runRow(book, row, steps));
  }
}

function runRow(book: Textbook, row: number, steps: Steps, part = {}): TextbookRow {
  const { batch, kvHead } = book.rowAt(row);
  const values = (key: number) =>
    Array.from({ length: book.shape.vDim }, (_, c) => book.v(batch, kvHead, key, c));
  return online(book.scores(row), values, steps, part);
}

const orders = { 'first to last': false, 'last to first': true };
/** A fault in blocks of 16 and of 32, in both orders. */
const inBlocks = (name: string, steps: Omit<Steps, 'block' | 'isBackward'>) =>
  Object.fromEntries(
    [16, 32].flatMap((block) =>
      Object.entries(orders).map(([order, isBackward]) => [
        `${name} (blocks of ${block} keys, ${order})`,
        { block, isBackward, ...steps },
      ]),
    ),
  );

describe('hypotheses about an online softmax', () => {
  it('predict rescales that are left out or late', () => {
    expectOnline(problemOf('fp32'), onlineSoftmaxHypotheses, {
      ...inBlocks(
        'output-not-rescaled: O is not rescaled when the maximum grows, while the row sum is rescaled',
        { ofOutput: () => 1 },
      ),
      ...inBlocks(
        'sum-not-rescaled: the row sum is not rescaled when the maximum grows, while O is rescaled',
        { ofSum: () => 1 },
      ),
      ...inBlocks('never-rescaled: neither O nor the row sum is rescaled when the maximum grows', {
        ofOutput: () => 1,
        ofSum: () => 1,
      }),
      ...inBlocks('late-rescale: O is rescaled by the factor of the block before', {
        ofOutput: (_, before) => before,
      }),
    });
  });

  it('predict exponentials that are wrong at 0', () => {
    const at = (factor: number) => ({
      p: (p: number, score: number, maximum: number) => (score === maximum ? factor : p),
    });
    for (const [factor, words] of [
      [0.5, 'half of'],
      [2, 'twice'],
    ] as const) {
      const name = `exponent-at-integers: the exponential is ${words} what it should be at the row maximum, where x is 0`;
      expectOnline(problemOf('fp32'), onlineSoftmaxHypotheses, {
        ...inBlocks(name, at(factor)),
        [name]: { block: 40, isBackward: false, ...at(factor) },
      });
    }
  });

  it.each(['bf16', 'fp16', 'e4m3', 'e5m2'] as const)(
    'predict P cut or saturated in %s',
    (format) => {
      const isEight = format.startsWith('e');
      const held = (offset: number, rounding: 'toward-zero' | 'nearest-even'): Rounding => {
        const up = 2 ** offset;
        return (x) => round(formats[format], x * up, { rounding, overflow: 'saturate' }) / up;
      };
      const frozen = `frozen-maximum: the maximum of the first block is never replaced, and P saturates in ${format}`;
      const stays = (maximum: number) => maximum;
      const lagging = (lag: number) => (maximum: number, largest: number) =>
        (largest - maximum) * Math.LOG2E <= lag ? maximum : largest;
      const plain = 'toward-zero';
      expectOnline(problemOf(format), onlineSoftmaxHypotheses, {
        ...(isEight
          ? inBlocks(
              `stale-maximum-saturates: P saturates in ${format} after a shift by 2^8, since the maximum may lag by 2^4, and the row sum does not`,
              { next: lagging(4), weight: held(8, 'nearest-even') },
            )
          : {
              ...inBlocks(frozen, { next: stays, weight: held(0, 'nearest-even') }),
              [`weights-truncated: P is truncated to ${format}, not rounded`]: {
                block: 40,
                isBackward: false,
                weight: held(0, plain),
              },
            }),
        ...(isEight
          ? {
              [`weights-underflow: small P become zero in ${format} for want of a scale, and the row sum counts them`]:
                { block: 40, isBackward: false, weight: held(0, 'nearest-even') },
            }
          : {}),
        ...(isEight
          ? Object.fromEntries(
              [1, 2, 4].map((octaves) => {
                const offset = Math.floor(Math.log2(formats[format].maxFinite)) + octaves;
                return [
                  `weights-saturate: P is multiplied by 2^${offset} and saturates in ${format}, whose largest number is ${formats[format].maxFinite}, and the row sum does not`,
                  { block: 40, isBackward: false, weight: held(offset, 'nearest-even') },
                ];
              }),
            )
          : {}),
      });
    },
  );

  it('is a softmax where nothing is wrong', () => {
    const scores = Float64Array.from({ length: 37 }, (_, j) => (j % 5 === 0 ? -Infinity : draw()));
    const sum = scores.reduce((all, s) => all + Math.exp(s), 0);
    for (const order of ['first to last', 'last to first'] as const)
      for (const block of [1, 8, 37])
        for (const lag of [0, 3]) {
          const run = runOnlineSoftmax(scores, new Float64Array(37), { block, order, lag });
          expect(run.lse).toBeCloseTo(Math.log(sum), 12);
          run.weights.forEach((w, j) => expect(w).toBeCloseTo(Math.exp(scores[j]) / sum, 12));
        }
    const empty = runOnlineSoftmax(new Float64Array(3).fill(-Infinity), new Float64Array(3), {
      block: 2,
      order: 'first to last',
    });
    expect(empty.lse).toBe(-Infinity);
    expect([...empty.weights]).toEqual([0, 0, 0]);
  });
});

describe('hypotheses about numbers kept too short', () => {
  const held = nearest('bf16');
  it('predict each step that is rounded, block by block and key by key', () => {
    // P is rounded to the format of V, as a sound kernel of it does.
    const weight = Math.fround;
    expectOnline(problemOf('fp32'), narrowHypotheses, {
      ...inBlocks('accumulator-narrow: the accumulator of O is kept in bf16 between blocks', {
        weight,
        accumulator: { block: held },
      }),
      ...inBlocks('accumulator-narrow: the accumulator of O is kept in bf16 for every product', {
        weight,
        accumulator: { key: held },
      }),
      ...inBlocks('row-sum-narrow: the row sum is kept in bf16 between blocks', {
        weight,
        sum: { block: held },
      }),
      ...inBlocks('row-sum-narrow: the row sum is kept in bf16 for every key', {
        weight,
        sum: { key: held },
      }),
      ...inBlocks('rescale-narrow: O is rescaled by a factor rounded to bf16', {
        weight,
        ofOutput: held,
      }),
      ...inBlocks("exponent-narrow: the exponential's argument is rounded to bf16", {
        weight,
        exponent: held,
      }),
      ...inBlocks('reciprocal-narrow: the reciprocal of the row sum is rounded to bf16', {
        weight,
        reciprocal: held,
      }),
      ...inBlocks('weights-narrow: P is kept in bf16, V in fp32', { weight: held }),
      ...inBlocks('weights-narrow: P is kept in fp16, V in fp32', { weight: nearest('fp16') }),
    });
  });

  it('take the rest as a sound kernel of these values has it', () => {
    const problem = problemOf('bf16');
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const name = "exponent-narrow: the exponential's argument is rounded to fp16";
    const found = [...hypothesesOf(narrowHypotheses, context)].filter(([key]) =>
      key.startsWith(name),
    );
    expect(found.length).toBeGreaterThan(2);
    for (const [key, { sound }] of found) {
      const block = Number(/\d+(?= keys)/.exec(key)?.[0] ?? 40);
      const steps = { block, isBackward: key.includes('last to first'), weight: held };
      for (const row of context.sample) {
        const expected = runRow(book, row.row, steps).out;
        sound!(row).forEach((x, c) => expect(x).toBeCloseTo(expected[c], 12));
      }
    }
  });

  it('predict the partial results of splits, which are merged by their LSE', () => {
    const problem = problemOf('fp32', 9);
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const found = hypothesesOf(narrowHypotheses, context);
    for (const splits of [2, 3, 4, 8]) {
      const name = `partials-narrow: the partial results of splits are kept in bf16 (${splits} splits)`;
      const length = Math.ceil(9 / splits);
      expectPredicts(found.get(name)!, context, (row) => {
        const parts: TextbookRow[] = [];
        for (let begin = 0; begin < 9; begin += length)
          parts.push(
            runRow(
              book,
              row,
              { block: 64, isBackward: true, weight: Math.fround },
              { begin, end: Math.min(begin + length, 9) },
            ),
          );
        const total = parts.reduce((sum, { lse }) => sum + Math.exp(lse), 0);
        const out = new Float64Array(2).map((_, c) =>
          parts.reduce((sum, part) => sum + (Math.exp(part.lse) / total) * held(part.out[c]), 0),
        );
        return { out, lse: Math.log(total) };
      });
    }
    expect([...found.keys()].some((name) => name.includes('(16 splits)'))).toBe(false);
  });
});
