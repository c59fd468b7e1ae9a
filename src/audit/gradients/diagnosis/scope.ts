import { rowElements, rowPlaces } from '../../../problem/index.js';
import type { GivenGradient } from '../judge-gradient.js';
import type { FailedGradients } from './failed-gradients.js';
import { fails } from './prediction.js';

/** Rows of queries that a cause is about, over [batch, heads, queries]: 1 for each. */
export type Scope = Uint8Array;

/** Rows of a gradient that belong together: a head of a sequence or of a batch entry. */
export interface Units {
  /** The unit of each row of the gradient, over [batch, heads or kv heads, queries or keys]. */
  readonly unit: Int32Array;
  readonly count: number;
}

/** The heads of sequences that rows of a gradient belong to. */
export function unitsOf(
  { problem, measured }: Pick<FailedGradients, 'problem' | 'measured'>,
  { axes }: GivenGradient['quantity'],
): Units {
  const { shape } = measured;
  const [batch, heads, rows] = axes;
  const [entries, count, length] = [shape[batch], shape[heads], shape[rows]];
  const { sequences } = problem;
  const unit = new Int32Array(entries * count * length);
  const all = Math.max(entries, sequences?.length ?? 0) * count;
  if (rows === 'queries') {
    const placeOf = rowPlaces(problem, shape);
    unit.forEach((_, row) => {
      const { sequence, head } = placeOf(Math.floor(row / length), row % length);
      unit[row] = sequence * count + head;
    });
    return { unit, count: all };
  }
  const sequenceOf = new Int32Array(length);
  sequences?.forEach(({ firstKey, keys }, i) => sequenceOf.fill(i, firstKey, firstKey + keys));
  unit.forEach((_, row) => {
    const head = Math.floor(row / length);
    const entry = sequences === undefined ? Math.floor(head / count) : sequenceOf[row % length];
    unit[row] = entry * count + (head % count);
  });
  return { unit, count: all };
}

/** The multiple of a row's roundings from which on the row is off. */
const sureDeviations = 3;

/** The rows of a gradient that are off by more than roundings make: 1 for each. */
export function offRows(
  { measured }: Pick<FailedGradients, 'measured'>,
  { quantity, values }: GivenGradient,
): Uint8Array {
  const { exact, bound } = measured.gradients[quantity.name];
  const columns = rowElements(quantity, measured.shape);
  return Uint8Array.from({ length: values.length / columns }, (_, row) => {
    let [errors, allowed, isOutside] = [0, 0, false];
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      const error = values[i] - exact.values[i] - bound.shift[i];
      errors += error * error;
      allowed += (bound.systematic[i] + sureDeviations * bound.deviation[i]) ** 2;
      isOutside ||= Math.abs(error) > bound.total[i];
    }
    return isOutside || errors > allowed ? 1 : 0;
  });
}

/** Rows that a tile may begin or end with. */
const tileStep = 16;

/** The numbers of rows of queries within their sequences. */
function numberedRows({ problem, measured: { shape } }: FailedGradients): Int32Array {
  const { batch, heads, queries } = shape;
  const placeOf = rowPlaces(problem, shape);
  const ofRow = (row: number) => placeOf(Math.floor(row / queries), row % queries).query;
  return Int32Array.from({ length: batch * heads * queries }, (_, row) => ofRow(row));
}

/** Rows between the first and the last of some that are off in each of their units, from and to where tiles may begin and end. */
function stretchOf(failed: FailedGradients, inUnits: Scope, off: Uint8Array): Scope | null {
  const number = numberedRows(failed);
  let [first, last] = [Infinity, 0];
  off.forEach((isOff, row) => {
    if (isOff === 0) return;
    first = Math.min(first, number[row]);
    last = Math.max(last, number[row]);
  });
  first = Math.floor(first / tileStep) * tileStep;
  last = (Math.floor(last / tileStep) + 1) * tileStep - 1;
  const stretch = inUnits.map((isIn, row) =>
    isIn === 1 && number[row] >= first && number[row] <= last ? 1 : 0,
  );
  const isNarrower = inUnits.some((isIn, row) => isIn === 1 && stretch[row] === 0);
  return isNarrower ? stretch : null;
}

/** Rows of queries of heads that read from heads of K and V where keys are off. */
function rowsOfKeys(failed: FailedGradients, one: GivenGradient): Scope[] {
  const { problem, measured } = failed;
  const { heads, kvHeads, groupSize, queries, batch } = measured.shape;
  const { unit } = unitsOf(failed, one.quantity);
  const off = offRows(failed, one);
  const isOff = new Set<number>();
  off.forEach((isOne, key) => isOne === 1 && isOff.add(unit[key]));
  const placeOf = rowPlaces(problem, measured.shape);
  const rowsWith = (isMember: (head: number) => boolean) =>
    Uint8Array.from({ length: batch * heads * queries }, (_, row) => {
      const { sequence, head } = placeOf(Math.floor(row / queries), row % queries);
      const kvHead = Math.floor(head / groupSize);
      return isOff.has(sequence * kvHeads + kvHead) && isMember(head % groupSize) ? 1 : 0;
    });
  const whole = rowsWith(() => true);
  const members =
    groupSize === 1 ? [] : Array.from({ length: groupSize }, (_, i) => rowsWith((m) => m === i));
  return [...(whole.includes(0) ? [whole] : []), ...members];
}

/**
 * Scopes of a fault that is not everywhere: the heads and sequences whose dQ is off, and the stretch of rows that is off within these;
 * where dQ is right, those of dK or dV.
 */
export function scopesOf(failed: FailedGradients): readonly Scope[] {
  const dq = failed.given.find(({ quantity }) => quantity.name === 'dq');
  if (dq === undefined || !fails(failed, dq)) {
    const one = failed.given.find((given) => fails(failed, given));
    return one === undefined ? [] : rowsOfKeys(failed, one);
  }
  const off = offRows(failed, dq);
  if (!off.includes(1)) return [];
  const { unit } = unitsOf(failed, dq.quantity);
  const isOff = new Set<number>();
  off.forEach((isOne, row) => isOne === 1 && isOff.add(unit[row]));
  const units = Uint8Array.from(unit, (one) => (isOff.has(one) ? 1 : 0));
  const stretch = stretchOf(failed, units, off);
  return [...(units.includes(0) ? [units] : []), ...(stretch === null ? [] : [stretch])];
}

/**
 * The rows of a gradient that a scope covers, 1 each: of dK and dV the keys whose queries are all in it. Null where some keys get shares
 * of rows within and without.
 */
export function rowsInScope(
  failed: FailedGradients,
  { quantity }: Pick<GivenGradient, 'quantity'>,
  scope: Scope | null,
): Uint8Array | null {
  const { problem, measured } = failed;
  const { groupSize, kvHeads, queries } = measured.shape;
  const { unit, count } = unitsOf(failed, quantity);
  if (scope === null) return new Uint8Array(unit.length).fill(1);
  if (quantity.name === 'dq') return scope;
  const [inside, outside] = [new Uint8Array(count), new Uint8Array(count)];
  const placeOf = rowPlaces(problem, measured.shape);
  scope.forEach((isIn, row) => {
    const { sequence, head } = placeOf(Math.floor(row / queries), row % queries);
    (isIn === 1 ? inside : outside)[sequence * kvHeads + Math.floor(head / groupSize)] = 1;
  });
  if (inside.some((isIn, one) => isIn === 1 && outside[one] === 1)) return null;
  return Uint8Array.from(unit, (one) => inside[one]);
}
