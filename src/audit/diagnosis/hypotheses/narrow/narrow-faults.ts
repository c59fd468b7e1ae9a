import { type Rounder, rounderTo } from '../../../premises/declared-row.js';
import type { BlockOrder } from '../online-softmax-faults.js';
import { type FormatName, formats, unitRoundoff } from '../../../../formats/index.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { runNarrowKernel, type NarrowKernel, type NarrowRow } from './narrow-kernel.js';

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

/** What of a law the sums Σ P V depend on, beside their blocks and the rounding of P. */
const ofSums = ['offset', 'exponent', 'accumulator', 'rescale'] as const;

/** Runs laws on rows, and keeps the results of the sound ones, which several faults are compared with. */
class Runs {
  readonly #context: HypothesisContext;
  /** The rounding of P of a sound kernel. */
  readonly #weights: Rounder;
  readonly #sound = new Map<string, Float64Array>();
  /** Σ P V of sound kernels, which those have too whose row sums or results alone are rounded otherwise. */
  readonly #sums = new Map<string, readonly Float64Array[]>();

  constructor(context: HypothesisContext, weights: Rounder) {
    this.#context = context;
    this.#weights = weights;
  }

  run(row: SampleRow, law: NarrowKernel): NarrowRow {
    const { reader } = this.#context;
    const { block, order, splits = 1 } = law;
    const isSound =
      law.weights === this.#weights && ofSums.every((name) => law[name] === undefined);
    const key = [row.row, block, order, splits].join();
    const known = isSound ? this.#sums.get(key) : undefined;
    const scores = reader.scores(row.row);
    const result = runNarrowKernel(scores, reader.valuesOf(row.row, row.kv), row.vDim, law, known);
    if (isSound) this.#sums.set(key, result.sums);
    return result;
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
  const runs = new Runs(context, weights);
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
