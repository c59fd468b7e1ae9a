import { type AttentionReference, forEachWeightTile, levels } from '../../../oracles/index.js';
import { decodeTensor, type FormatName, formats, unitRoundoff } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import {
  createRowNumbers,
  isClustered,
  type KernelBound,
  outputRounding,
} from '../bounds/index.js';
import type { NearlyEqual } from './error-pool.js';
import { walkRows } from './structure-statistic.js';

/** Slots of a row's table of weights, as a power of two. */
const tableBits = 11;

/** What the structure tests need to know of all rows before they look at any, [batch, heads, queries]. */
interface RowSurvey {
  /** The key with the largest weight, −1 for a row without weights. */
  readonly heaviest: Int32Array;
  /** Σ w². */
  readonly squares: Float64Array;
  /** Rows of one number may err alike, others err independently: see docs/bounds.md, "The spread". */
  readonly unit: Int32Array;
  /** Whether another row has the same number. */
  readonly isShared: (row: number) => boolean;
}

function sumOfSquares(values: Float64Array): number {
  let sum = 0;
  for (const x of values) sum += x * x;
  return sum;
}

/**
 * Walks over the weights once, before the statistics do.
 * @param groups tells weights apart that do not round alike
 */
export function surveyRows(
  problem: Problem,
  reference: AttentionReference,
  weightFormat: FormatName,
  groups: NearlyEqual,
): RowSurvey {
  const { queries } = reference.shape;
  const rows = reference.quantities.lse.values.length;
  const heaviest = new Int32Array(rows).fill(-1);
  const squares = new Float64Array(rows);
  const unit = new Int32Array(rows);
  const counts = new Map<number, number>();
  // Σ w by a hash of the weight's group: too much where two groups meet, as in the bounds' tables.
  const tables = Array.from({ length: walkRows }, () => new Float64Array(2 ** tableBits));
  const mass = new Float64Array(walkRows);
  const toLargest = new Float64Array(walkRows);
  const own = new Float64Array(walkRows);
  const most = new Float64Array(walkRows);
  const at = new Int32Array(walkRows).fill(-1);
  const numberRow = createRowNumbers(reference, weightFormat);
  forEachWeightTile(problem, reference, [], {
    begin: (head, firstRow, count) => {
      for (let i = 0; i < count; i++) {
        const row = head * queries + firstRow + i;
        toLargest[i] = Math.exp(reference.quantities.lse.values[row] - reference.maximum[row]);
      }
    },
    visit: ({ rows: count, firstKey, keys, stride, weights }) => {
      for (let i = 0; i < count; i++) {
        const table = tables[i];
        const factor = toLargest[i];
        for (let j = 0; j < keys; j++) {
          const w = weights[i * stride + j];
          if (w === 0) continue;
          const slot = Math.imul(groups.group(w * factor), 0x9e3779b1) >>> (32 - tableBits);
          table[slot] += w;
          own[i] += w * w;
          mass[i] += w;
          if (w <= most[i]) continue;
          most[i] = w;
          at[i] = firstKey + j;
        }
      }
    },
    end: (head, firstRow, count) => {
      for (let i = 0; i < count; i++) {
        const row = head * queries + firstRow + i;
        const table = tables[i];
        heaviest[row] = at[i];
        squares[row] = own[i];
        const isSpecial = levels[reference.level[row]] === 'special';
        const number = numberRow(
          row,
          !isSpecial &&
            isClustered({ mass: mass[i], squares: own[i], squaresAlike: sumOfSquares(table) }),
        );
        unit[row] = number;
        counts.set(number, (counts.get(number) ?? 0) + 1);
        table.fill(0);
        most[i] = own[i] = mass[i] = 0;
        at[i] = -1;
      }
    },
  });
  return { heaviest, squares, unit, isShared: (row) => counts.get(unit[row])! > 1 };
}

/**
 * A direction X that the kernel's error r is projected on, and the pattern Y whose multiple is looked for:
 * Σ r·X / Σ Y·X is 1 for r = Y. Both [batch, heads, queries, vDim]; X does not depend on the output.
 */
export interface Instrument {
  readonly direction: Float64Array;
  readonly pattern: Float64Array;
}

/** The instruments of the structure tests. */
interface Instruments {
  /** Y = O, each element by the inverse of its noise. */
  readonly scale: Instrument;
  /** The same without the value of the row's heaviest key: blind to how its weight is rounded. */
  readonly lightScale: Instrument;
  /** Y = 1, weighed alike. */
  readonly bias: Instrument;
  /** Y = half an ulp of O away from zero, weighed alike. */
  readonly truncation: Instrument;
}

/** Mean square of the relative rounding error of a number whose logarithm is anywhere, in units of u². */
const meanSquareRounding = 0.18;

/** A direction that keeps less than this of its square is not free of fp64 roundings of what was removed. */
const negligible = 2 ** -20;

/** Mean square of what the roundings within a kernel do to an element, from Σ w|v| and Σ w². */
function innerNoise(
  bound: KernelBound,
  weightFormat: FormatName,
  squares: Float64Array,
): (row: number) => number {
  const roundoff = unitRoundoff(formats[weightFormat]);
  return (row) => {
    const { keys, addition, typicalWeight } = bound.row(row);
    const ofWeight = meanSquareRounding * roundoff ** 2 + (typicalWeight / 8) ** 2;
    return ofWeight * squares[row] + (keys * addition ** 2) / 8;
  };
}

/** What instruments are made for: the formats are those of the output and of the weights. */
interface InstrumentRequest {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly bound: KernelBound;
  readonly outputFormat: FormatName;
  readonly weightFormat: FormatName;
}

/**
 * The directions of least squares: an element counts by the inverse of its expected noise (which need not
 * be right for a test to be sound). Zero for rows that no statistic admits.
 */
export function createInstruments(
  { problem, reference, bound, outputFormat, weightFormat }: InstrumentRequest,
  { heaviest, squares }: RowSurvey,
): Instruments {
  const {
    shape,
    quantities: {
      out: { values: out, magnitude },
    },
  } = reference;
  const { vDim, heads, kvHeads, groupSize, queries, keys } = shape;
  const values = decodeTensor(problem.v);
  const zeros = () => new Float64Array(out.length);
  const [scale, light, bias, truncation, halves] = [zeros(), zeros(), zeros(), zeros(), zeros()];
  const noise = innerNoise(bound, weightFormat, squares);
  const weigh = (x: number, deviation: number) => {
    const weighed = x / deviation / deviation;
    return Number.isFinite(weighed) ? weighed : 0;
  };
  for (let row = 0; row < reference.quantities.lse.values.length; row++) {
    if (levels[reference.level[row]] === 'special' || heaviest[row] < 0) continue;
    const ofRow = Math.sqrt(noise(row));
    for (let at = row * vDim; at < (row + 1) * vDim; at++) {
      const exact = out[at];
      const half = outputRounding(outputFormat, exact, 0);
      const deviation = Math.hypot(ofRow * magnitude[at], half / Math.sqrt(3));
      halves[at] = half * Math.sign(exact);
      scale[at] = weigh(exact, deviation);
      bias[at] = weigh(1, deviation);
      truncation[at] = weigh(halves[at], deviation);
    }
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const from = (kv * keys + heaviest[row]) * vDim;
    removeComponent(scale, light, row * vDim, values.subarray(from, from + vDim));
  }
  const ones = new Float64Array(out.length).fill(1);
  return {
    scale: { direction: scale, pattern: out },
    lightScale: { direction: light, pattern: out },
    bias: { direction: bias, pattern: ones },
    truncation: { direction: truncation, pattern: halves },
  };
}

/** Writes a row of `direction` less its component along `value` to `to`. */
function removeComponent(
  direction: Float64Array,
  to: Float64Array,
  first: number,
  value: Float64Array,
): void {
  let product = 0;
  let ofValue = 0;
  let before = 0;
  for (let c = 0; c < value.length; c++) {
    product += direction[first + c] * value[c];
    ofValue += value[c] ** 2;
    before += direction[first + c] ** 2;
  }
  const share = ofValue > 0 && Number.isFinite(product / ofValue) ? product / ofValue : 0;
  let after = 0;
  for (let c = 0; c < value.length; c++) {
    const x = direction[first + c] - share * value[c];
    to[first + c] = x;
    after += x * x;
  }
  if (!(after > negligible * before)) to.fill(0, first, first + value.length);
}
