import type { EmulatedNames } from '../../attributed-kernel.js';
import { dotFloat32, largestScore, softcapFloat32 } from '../operations.js';
import { carried } from './nearest.js';
import type { Operand } from './operands.js';

/** The keys begin ≤ j < end that a query sees, with all operands of its head. */
export interface RowOperands {
  /** The query's row in `q`. */
  readonly row: number;
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
  readonly begin: number;
  readonly end: number;
  readonly qkDim: number;
  readonly vDim: number;
}

/** A row's scores, the largest of them, and their differences from that. */
export interface RowExponents {
  readonly maximum: number;
  /** [keys seen] */
  readonly exponents: Float64Array;
}

/** What scores are multiplied by, capped with and rounded by. */
export interface ScoreLaw {
  readonly scale: number;
  readonly softcap: number | null;
  /** Rounds to the format between the passes, in place. */
  readonly round: (values: Float64Array) => void;
}

function dots(a: Float64Array, b: Float64Array, { row, begin, end, qkDim }: RowOperands) {
  const sums = new Float64Array(end - begin);
  for (let j = begin; j < end; j++) {
    let sum = 0;
    for (let t = 0; t < qkDim; t++) sum += a[row * qkDim + t] * b[j * qkDim + t];
    sums[j - begin] = sum;
  }
  return sums;
}

/** A row's products q·k, [keys seen], by the techniques `input-round` and `qk-accumulate`. */
export function rowDots(operands: RowOperands, emulated: EmulatedNames): Float64Array {
  const { q, k, row, begin, end, qkDim } = operands;
  const isRounded = emulated.has('input-round');
  const actual = isRounded
    ? dots(q.nearest, k.nearest, operands)
    : dots(q.values, k.values, operands);
  if (!emulated.has('qk-accumulate')) return actual;
  const isNearest = isRounded || (q.values === q.nearest && k.values === k.nearest);
  const nearest = isNearest ? actual : dots(q.nearest, k.nearest, operands);
  return Float64Array.from({ length: end - begin }, (_, i) =>
    carried(
      dotFloat32(q.nearest, row * qkDim, k.nearest, (begin + i) * qkDim, qkDim),
      actual[i] - nearest[i],
    ),
  );
}

/** The scores of products: scaled, softcapped, and rounded between the passes. */
function scoresOf(products: Float64Array, law: ScoreLaw, emulated: EmulatedNames): Float64Array {
  const { fround, tanh } = Math;
  const { scale, softcap, round } = law;
  const pass = (values: Float64Array): Float64Array => {
    if (emulated.has('score-round')) round(values);
    return values;
  };
  const scaleFloat32 = fround(scale);
  const raw = pass(products.slice());
  const scaled = pass(
    raw.map((s) =>
      emulated.has('scale-subtract')
        ? carried(fround(fround(s) * scaleFloat32), (s - fround(s)) * scale)
        : s * scale,
    ),
  );
  if (softcap === null) return scaled;
  const exact = (s: number): number => softcap * tanh(s / softcap);
  const cap = fround(softcap);
  return pass(
    scaled.map((s) =>
      emulated.has('softcap')
        ? carried(softcapFloat32(fround(s), cap), s === fround(s) ? 0 : exact(s) - exact(fround(s)))
        : exact(s),
    ),
  );
}

/**
 * The exponents of a row from its products, by the techniques `score-round`, `scale-subtract` and
 * `softcap`. The maximum is that of these scores: it cancels, and is no technique by itself.
 */
export function rowExponents(
  products: Float64Array,
  law: ScoreLaw,
  emulated: EmulatedNames,
): RowExponents {
  const { fround } = Math;
  const scores = scoresOf(products, law, emulated);
  const maximum = largestScore(scores);
  const nearestMaximum = fround(maximum);
  const exponents = scores.map((s) =>
    emulated.has('scale-subtract')
      ? carried(fround(fround(s) - nearestMaximum), s - fround(s) - (maximum - nearestMaximum))
      : s - maximum,
  );
  return { maximum, exponents };
}
