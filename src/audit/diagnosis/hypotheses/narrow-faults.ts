import { type Rounder, rounderTo } from '../../premises/declared-row.js';
import type { BlockOrder } from './online-softmax-faults.js';
import { type FormatName, formats, unitRoundoff } from '../../../formats/index.js';
import type { KeyRange } from '../../../problem/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';

/** The places where a kernel rounds to a short format; where a rounder is left out, numbers are kept in fp64. */
interface NarrowKernel {
  readonly block: number;
  readonly order: BlockOrder;
  /** Number of stretches of keys that are computed apart and combined by their LSE; default 1. */
  readonly splits?: number;
  readonly weights: Rounder;
  /** P is multiplied by 2^offset before its rounding; default 0. */
  readonly offset?: number;
  /** The rounding of the argument of 2^x. */
  readonly exponent?: Rounder;
  /** The rounding of O, after every key or after every block. */
  readonly accumulator?: Rounder;
  /** The row sum likewise. */
  readonly sum?: Rounder;
  readonly every?: 'key' | 'block';
  /** The rounding of the factor that O is rescaled by. */
  readonly rescale?: Rounder;
  readonly reciprocal?: Rounder;
  /** The rounding of the result that a split hands on. */
  readonly partial?: Rounder;
}

/** Results of one row. */
interface NarrowRow {
  readonly out: Float64Array;
  readonly lse: number;
}

function runSplit(
  scores: Float64Array,
  values: Float64Array,
  vDim: number,
  law: NarrowKernel,
  { begin, end }: KeyRange,
): NarrowRow {
  const { block, weights, exponent, accumulator, rescale, every } = law;
  const scaleUp = 2 ** (law.offset ?? 0);
  const ofKey = every === 'key' ? accumulator : undefined;
  const sumOfKey = every === 'key' ? law.sum : undefined;
  const out = new Float64Array(vDim);
  let maximum = -Infinity;
  let sum = 0;
  const blocks = Math.ceil((end - begin) / block);
  for (let visit = 0; visit < blocks; visit++) {
    const index = law.order === 'first to last' ? visit : blocks - 1 - visit;
    const first = begin + index * block;
    const last = Math.min(first + block, end);
    let largest = maximum;
    for (let j = first; j < last; j++) if (scores[j] > largest) largest = scores[j];
    if (largest === -Infinity) continue;
    const factor = maximum === -Infinity ? 0 : Math.exp(maximum - largest);
    const ofOutput = rescale === undefined ? factor : rescale(factor);
    maximum = largest;
    sum *= factor;
    if (ofOutput !== 1) for (let c = 0; c < vDim; c++) out[c] *= ofOutput;
    for (let j = first; j < last; j++) {
      if (scores[j] === -Infinity) continue;
      const x = (scores[j] - maximum) * Math.LOG2E;
      const p = 2 ** (exponent === undefined ? x : exponent(x));
      sum += p;
      if (sumOfKey !== undefined) sum = sumOfKey(sum);
      const w = weights(p * scaleUp) / scaleUp;
      const from = j * vDim;
      if (ofKey === undefined) for (let c = 0; c < vDim; c++) out[c] += w * values[from + c];
      else for (let c = 0; c < vDim; c++) out[c] = ofKey(out[c] + w * values[from + c]);
    }
    if (accumulator !== undefined && ofKey === undefined)
      for (let c = 0; c < vDim; c++) out[c] = accumulator(out[c]);
    if (law.sum !== undefined && sumOfKey === undefined) sum = law.sum(sum);
  }
  if (maximum === -Infinity) return { out, lse: -Infinity };
  const inverse = law.reciprocal === undefined ? 1 / sum : law.reciprocal(1 / sum);
  return { out: out.map((x) => x * inverse), lse: maximum + Math.log(sum) };
}

/**
 * Runs an online softmax over `scores` (natural, −∞ where masked) that rounds where the law says so, and
 * in fp64 elsewhere.
 */
function runNarrowKernel(
  scores: Float64Array,
  values: Float64Array,
  vDim: number,
  law: NarrowKernel,
): NarrowRow {
  const { splits = 1, partial } = law;
  const keys = scores.length;
  if (splits === 1) return runSplit(scores, values, vDim, law, { begin: 0, end: keys });
  const size = Math.ceil(keys / splits);
  const parts: NarrowRow[] = [];
  for (let begin = 0; begin < keys; begin += size)
    parts.push(runSplit(scores, values, vDim, law, { begin, end: Math.min(begin + size, keys) }));
  const largest = Math.max(...parts.map(({ lse }) => lse));
  if (largest === -Infinity) return parts[0];
  const lse = largest + Math.log(parts.reduce((sum, one) => sum + Math.exp(one.lse - largest), 0));
  const out = new Float64Array(vDim);
  for (const part of parts) {
    const weight = Math.exp(part.lse - lse);
    for (let c = 0; c < vDim; c++) {
      const x = part.out[c];
      out[c] += weight * (partial === undefined ? x : partial(x));
    }
  }
  return { out, lse };
}

/** A fault of keeping numbers in a shorter format than they should be. */
interface NarrowFault {
  readonly id: string;
  readonly technique: string | null;
  readonly statement: string;
  readonly law: Partial<NarrowKernel>;
  /** Relative rounding of the output that comes with it. */
  readonly coarse: number;
}

const blockSizes = [64, 128, 32, 16, 256] as const;
const orders: readonly BlockOrder[] = ['last to first', 'first to last'];
const splitCounts = [2, 3, 4, 8, 16] as const;
const shortFormats = ['bf16', 'fp16'] as const;

/** Formats that P may be kept in, with a shift before, coarser than that of V. */
function weightFaults(ofValues: FormatName): NarrowFault[] {
  const coarser = (['bf16', 'fp16', 'e4m3', 'e5m2'] as const).filter(
    (name) => unitRoundoff(formats[name]) > unitRoundoff(formats[ofValues]),
  );
  return coarser.flatMap((name) =>
    (name === 'e4m3' || name === 'e5m2' ? [8, 0] : [0]).map((offset) => ({
      id: 'weights-narrow',
      technique: 'p-round',
      statement: `P is kept in ${name}, V in ${ofValues}`,
      law: { weights: rounderTo(name), offset },
      coarse: 0,
    })),
  );
}

function faultsOf(name: (typeof shortFormats)[number]): NarrowFault[] {
  const held = rounderTo(name);
  const coarse = unitRoundoff(formats[name]);
  return [
    ...(['block', 'key'] as const).flatMap((every): NarrowFault[] => [
      {
        id: 'accumulator-narrow',
        technique: 'pv-accumulate',
        statement: `the accumulator of O is kept in ${name}${every === 'key' ? ' for every product' : ' between blocks'}`,
        law: { accumulator: held, every },
        coarse,
      },
      {
        id: 'row-sum-narrow',
        technique: 'row-sum',
        statement: `the row sum is kept in ${name}${every === 'key' ? ' for every key' : ' between blocks'}`,
        law: { sum: held, every },
        coarse: 0,
      },
    ]),
    {
      id: 'rescale-narrow',
      technique: 'rescale',
      statement: `O is rescaled by a factor rounded to ${name}`,
      law: { rescale: held },
      coarse: 0,
    },
    {
      id: 'exponent-narrow',
      technique: 'scale-subtract',
      statement: `the exponential's argument is rounded to ${name}`,
      law: { exponent: held },
      coarse: 0,
    },
    {
      id: 'reciprocal-narrow',
      technique: 'normalise',
      statement: `the reciprocal of the row sum is rounded to ${name}`,
      law: { reciprocal: held },
      coarse: 0,
    },
  ];
}

/** Runs laws on rows, and keeps the results of the sound ones, which several faults are compared with. */
class Runs {
  readonly #context: HypothesisContext;
  readonly #sound = new Map<string, Float64Array>();

  constructor(context: HypothesisContext) {
    this.#context = context;
  }

  run(row: SampleRow, law: NarrowKernel): NarrowRow {
    const { reader } = this.#context;
    return runNarrowKernel(reader.scores(row.row), reader.valuesOf(row.row, row.kv), row.vDim, law);
  }

  sound(row: SampleRow, law: NarrowKernel): Float64Array {
    const { block, order, splits = 1, weights } = law;
    const key = [row.row, block, order, splits].join();
    const known = this.#sound.get(key);
    if (known !== undefined) return known;
    const { out } = this.run(row, { block, order, splits, weights });
    this.#sound.set(key, out);
    return out;
  }
}

function hypothesis(
  runs: Runs,
  { id, technique, statement, law, coarse }: NarrowFault,
  base: NarrowKernel,
  where: string,
): Hypothesis {
  return {
    id,
    technique,
    statement: `${statement}${where}`,
    cause: statement,
    predict: (row) => {
      const { out, lse } = runs.run(row, { ...base, ...law });
      const limit = row.correct.limit.map((x, c) => x + 4 * coarse * Math.abs(out[c]));
      return { out, lse: row.reported(lse), limit, noise: row.correct.noise };
    },
    sound: (row) => runs.sound(row, base),
  };
}

/** Numbers of an online softmax kept in too short a format, by block size and order, or by splits. */
export const narrowHypotheses: HypothesisFamily = function* (context) {
  const { shape, reader } = context;
  const { format } = reader.problem.v;
  if (format === 'fp64') return;
  const weights = rounderTo(format);
  const runs = new Runs(context);
  const faults = [...shortFormats.flatMap(faultsOf), ...weightFaults(format)];
  const sizes = [...new Set(blockSizes.map((size) => Math.min(size, shape.keys)))];
  for (const fault of faults)
    for (const block of sizes)
      for (const order of block < shape.keys ? orders : orders.slice(0, 1))
        yield hypothesis(
          runs,
          fault,
          { block, order, weights },
          block < shape.keys ? ` (blocks of ${block} keys, ${order})` : '',
        );
  for (const name of shortFormats) {
    const fault: NarrowFault = {
      id: 'partials-narrow',
      technique: null,
      statement: `the partial results of splits are kept in ${name}`,
      law: { partial: rounderTo(name) },
      coarse: unitRoundoff(formats[name]),
    };
    for (const splits of splitCounts.filter((count) => count <= shape.keys))
      for (const block of [64, shape.keys])
        yield hypothesis(
          runs,
          fault,
          { block, order: 'last to first', splits, weights },
          ` (${splits} splits)`,
        );
  }
};
