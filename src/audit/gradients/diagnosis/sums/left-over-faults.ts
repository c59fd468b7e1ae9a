import { formatNumber, listed } from '../../../../words/index.js';
import { rowElements } from '../../../../problem/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type Prediction } from '../prediction.js';

/** Rows of tiles that an accumulator is used for, one after the other. */
const tileSizes = [64, 128, 32, 96, 192, 256] as const;

/** Stretches of a gradient that one accumulator sums one after the other: heads, or tiles of rows of one head. */
interface Stretches {
  /** The words "head", or "tile of 64 keys". */
  readonly words: string;
  /** Number of elements of a stretch and, where the last of a head is shorter, of a head. */
  readonly size: number;
  readonly ofHead: number;
  /** Whether the first stretch of a head begins with the left-over of the head before. */
  readonly crosses: boolean;
}

/** Every stretch with the left-over of all before it, or of the one before. */
function withLeftOvers(
  values: Float64Array,
  { size, ofHead, crosses }: Stretches,
  isRunning: boolean,
): Float64Array {
  const made = values.slice();
  let before = -1;
  for (let head = 0; head < values.length; head += ofHead) {
    if (!crosses) before = -1;
    for (let at = head; at < Math.min(head + ofHead, values.length); at += size) {
      const length = Math.min(size, head + ofHead - at);
      if (before >= 0)
        for (let i = 0; i < length; i++) made[at + i] += (isRunning ? made : values)[before + i];
      before = at;
    }
  }
  return made;
}

/** The largest distance from 1 of the part of a left-over in the error. */
const nearness = 2 ** -3;

/** Whether an error is the change that a prediction makes, except for other errors. */
function isAlong(values: Float64Array, exact: Float64Array, predicted: Float64Array): boolean {
  let [products, squares] = [0, 0];
  exact.forEach((x, i) => {
    const change = predicted[i] - x;
    products += (values[i] - x) * change;
    squares += change * change;
  });
  return squares > 0 && Math.abs(products / squares - 1) < nearness;
}

/** Gradients that begin with the left-over of another stretch of them in the accumulator. */
function* ofStretches(
  failed: FailedGradients,
  failing: readonly GivenGradient[],
): Generator<Prediction> {
  const { measured } = failed;
  const { shape } = measured;
  const names = listed(failing.map(({ quantity }) => quantity.prose));
  const tries = (stretchesOf: (one: GivenGradient) => Stretches | null, isRunning: boolean) => {
    const predicted: [GradientQuantityName, Float64Array][] = [];
    const sizes: [GradientQuantityName, Float64Array][] = [];
    for (const one of failing) {
      const { name } = one.quantity;
      const { values, magnitude } = measured.gradients[name].exact;
      const stretches = stretchesOf(one);
      if (stretches === null) return null;
      const made = withLeftOvers(values, stretches, isRunning);
      if (!isAlong(one.values, values, made)) return null;
      predicted.push([name, made]);
      sizes.push([name, withLeftOvers(magnitude, stretches, isRunning)]);
    }
    return { predicted: Object.fromEntries(predicted), sizes: Object.fromEntries(sizes) };
  };
  const sizesOf = ({ quantity }: GivenGradient) => {
    const [, , rows] = quantity.axes;
    return { rows: shape[rows], columns: rowElements(quantity, shape), axis: rows };
  };
  const kinds = [0, ...tileSizes].flatMap((tile) =>
    [true, false].map((crosses) => ({ tile, crosses })),
  );
  for (const { tile, crosses } of kinds)
    for (const isRunning of [true, false]) {
      if (tile === 0 && !crosses) continue;
      const stretchesOf = (one: GivenGradient): Stretches | null => {
        const { rows, columns, axis } = sizesOf(one);
        if (tile >= rows) return null;
        const ofHead = rows * columns;
        const words = tile === 0 ? 'head' : `tile of ${tile} ${axis}`;
        return { words, size: tile === 0 ? ofHead : tile * columns, ofHead, crosses };
      };
      const found = tries(stretchesOf, isRunning);
      if (found === null) continue;
      const { words } = stretchesOf(failing[0])!;
      yield {
        id: 'accumulator-not-zeroed',
        sentence: `the sum of every ${words} of ${names} begins with ${isRunning ? 'all that those before it left' : 'what the one before it adds'}, as where an accumulator is not zeroed`,
        ...found,
      };
      return;
    }
}

/** The relative distance within which numbers count as one. */
const sameness = 2 ** -6;

/** A gradient that is off by the same number everywhere. */
function* ofNumber(failed: FailedGradients, one: GivenGradient): Generator<Prediction> {
  const { values } = failed.measured.gradients[one.quantity.name].exact;
  // Where all elements are one number any factor would look the same.
  if (values.every((x) => Math.abs(x - values[0]) <= sameness * Math.abs(values[0]))) return;
  const off = one.values.reduce((sum, x, i) => sum + (x - values[i]), 0) / values.length;
  if (!Number.isFinite(off) || off === 0) return;
  const predicted = values.map((x) => x + off);
  if (!isAlong(one.values, values, predicted)) return;
  yield {
    id: 'accumulator-not-zeroed',
    sentence: `${one.quantity.prose} is off by ${formatNumber(off)} everywhere, as where its sums begin with what their memory held`,
    predicted: { [one.quantity.name]: predicted },
  };
}

/** Gradients whose sums do not begin with 0: of the tile or head before them, or of a number. That of the last launch is a factor of 2. */
export function* leftOverFaults(failed: FailedGradients): Generator<Prediction> {
  const failing = failed.given.filter((one) => fails(failed, one));
  if (failing.length === 1) yield* ofNumber(failed, failing[0]);
  yield* ofStretches(failed, failing);
}
