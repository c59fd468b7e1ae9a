import { rowElements } from '../../../problem/index.js';
import { everywhere, placeOfKeys, placeOfRows, type Place } from '../../rows/index.js';
import type { GivenGradient } from '../judge-gradient.js';
import type { FailedGradients } from './failed-gradients.js';
import type { Prediction } from './prediction.js';
import { unitsOf, type Scope, type Units } from './scope.js';

/** The signal to noise, squared, from which on a unit tells whether a cause holds in it: 8 standard deviations. */
const surely = 64;

/** The units of a gradient in which a cause shows, and whether it does not in one where it would. */
interface Showing {
  readonly units: Units;
  readonly shown: ReadonlySet<number>;
  readonly isRefuted: boolean;
}

/** The units in which a given gradient has the predicted change: by its part in the error, each element weighed by its roundings. */
function showingOf(
  failed: FailedGradients,
  { quantity, values }: GivenGradient,
  { predicted, base }: { readonly predicted: Float64Array; readonly base: Float64Array },
): Showing {
  const { bound } = failed.measured.gradients[quantity.name];
  const columns = rowElements(quantity, failed.measured.shape);
  const units = unitsOf(failed, quantity);
  const [along, signal] = [new Float64Array(units.count), new Float64Array(units.count)];
  values.forEach((x, i) => {
    const change = predicted[i] - base[i];
    if (change === 0) return;
    const unit = units.unit[Math.floor(i / columns)];
    const noise = bound.deviation[i] ** 2 + bound.systematic[i] ** 2;
    // A change without roundings of its own is told by its size.
    const weight = 1 / (noise > 0 ? noise : change ** 2);
    if (!Number.isFinite(weight) || !Number.isFinite(change)) return;
    along[unit] += weight * change * (x - base[i]);
    signal[unit] += weight * change * change;
  });
  const shown = new Set<number>();
  let isRefuted = false;
  signal.forEach((size, unit) => {
    if (size < surely) return;
    if (along[unit] > size / 2) shown.add(unit);
    else isRefuted = true;
  });
  return { units, shown, isRefuted };
}

/** The numbers of the rows of some units, without those that a cause does not touch. */
function rowsIn({ units, shown }: Showing, touched: Uint8Array | undefined): number[] {
  const rows: number[] = [];
  units.unit.forEach((unit, row) => {
    if (shown.has(unit) && touched?.[row] !== 0) rows.push(row);
  });
  return rows;
}

/**
 * The place where a cause shows: the heads and sequences whose gradients have its change. Units in which the change is not beyond
 * rounding tell nothing, and the place leaves them out.
 * @returns null for a cause that claims a head or a sequence and is not there, although it would be seen
 */
export function placeShown(
  failed: FailedGradients,
  prediction: Prediction,
  scope: Scope | null,
): Place | null {
  const { problem, measured, given } = failed;
  const { predicted, place, isShifted } = prediction;
  const touched = prediction.rows ?? scope ?? undefined;
  if (place !== undefined) return place;
  const layout = { ...problem, shape: measured.shape };
  const without = prediction.without?.() ?? {};
  const all = given.flatMap((one) => {
    const { name } = one.quantity;
    const values = predicted[name];
    if (values === undefined) return [];
    const { exact, bound } = measured.gradients[name];
    const moved = (x: number, i: number) => x + bound.shift[i];
    const of = {
      predicted: isShifted === true ? values : values.map(moved),
      base: without[name] ?? exact.values.map(moved),
    };
    return [{ one, showing: showingOf(failed, one, of) }];
  });
  if (all.some(({ showing }) => showing.isRefuted)) return null;
  const ofQueries = all.find(({ one }) => one.quantity.name === 'dq')?.showing;
  if (ofQueries !== undefined && ofQueries.shown.size > 0)
    return placeOfRows(rowsIn(ofQueries, touched), layout);
  const ofKeys = all.filter(
    ({ one, showing }) => one.quantity.name !== 'dq' && showing.shown.size > 0,
  );
  if (ofKeys.length === 0) return everywhere;
  return placeOfKeys(new Set(ofKeys.flatMap(({ showing }) => rowsIn(showing, undefined))), layout);
}
