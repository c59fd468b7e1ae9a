import { type FormatName, formats, round, ulp } from '../formats/index.js';
import { rowElements } from '../problem/index.js';
import { numbersOfRank } from './error-profile.js';
import { type ComparedValues, type Coordinates, placeOf } from './kernel-outputs.js';

/** Every element of a quantity of vectors against its worst-case bound. */
export interface ElementTest {
  readonly elements: number;
  /** Elements whose error exceeds the bound. */
  readonly outside: number;
  /** Elements without a bound: nothing is said of their size. */
  readonly unbounded: number;
  /** Elements NaN or infinite where a correct kernel is finite, or finite where it is not. */
  readonly nonFinite: number;
  /** Largest and median of error / bound over the finite elements. */
  readonly worstRatio: number;
  readonly medianRatio: number;
  /** The element of `worstRatio`: its place, value, exact value, error and bound; null without finite elements. */
  readonly worst: {
    readonly at: Coordinates;
    readonly value: number;
    readonly oracle: number;
    readonly error: number;
    readonly bound: number;
  } | null;
  readonly firstNonFinite: Coordinates | null;
}

/**
 * Whether an infinity, or the NaN of a format without infinities, is the rounding to the format of some
 * number within `error` of a finite exact value: beyond the largest finite number and half an ulp, to nearest
 * even. An infinity must have the sign of such a number.
 *
 * @param error the most by which a correct value may differ from the exact one before it is rounded
 */
export function isAdmittedOverflow(
  value: number,
  exact: number,
  error: number,
  format: FormatName,
): boolean {
  if (Number.isNaN(error)) return false;
  const furthest = [exact + error, exact - error];
  return furthest.some((number) => Object.is(round(formats[format], number), value));
}

/** The rounding of an output next to the largest finite number: half an ulp there. */
function largestRounding(format: FormatName): number {
  return ulp(formats[format], formats[format].maxFinite) / 2;
}

/** Whether a correct kernel may give a special or overflowing output. */
function admitsNonFinite(value: number, exact: number, bound: number, format: FormatName): boolean {
  if (Number.isNaN(exact)) return Number.isNaN(value);
  // A weight that underflows makes 0·∞ of an infinity in V.
  if (!Number.isFinite(exact)) return value === exact || Number.isNaN(value);
  // Sums that may overflow have no bound.
  if (bound === Infinity) return value === Math.sign(exact) * Infinity;
  // The bound holds the rounding of the output, which is still to come.
  const error = Math.max(bound - largestRounding(format), 0);
  return isAdmittedOverflow(value, exact, error, format);
}

/**
 * Tests |value − exact| ≤ limit element by element. Rows without keys have a limit of 0, since they must
 * be exactly zero.
 *
 * @param admitsOverflow whether an element without a bound may be infinite or NaN, by its number: `Premises.isShortRange`
 * @param limits the worst case of a correct kernel, the oracle's own radius included; ∞ where nothing
 * is known
 * @throws Error for a limit that is NaN where the oracle is finite: a defect of the bounds, which must not count as passed
 */
export function testElements(
  { quantity, shape, exact: oracle, values, format, mayBeNaN }: ComparedValues,
  limits: Float64Array,
  admitsOverflow: (element: number) => boolean = () => false,
): ElementTest {
  const { values: exacts } = oracle;
  const columns = rowElements(quantity, shape);
  const ratios = new Float64Array(values.length);
  let finite = 0;
  let outside = 0;
  let unbounded = 0;
  let nonFinite = 0;
  let firstNonFinite: Coordinates | null = null;
  let worstRatio = -1;
  let worst: ElementTest['worst'] = null;
  for (let i = 0; i < values.length; i++) {
    const exact = exacts[i];
    const limit = limits[i];
    if (Number.isNaN(limit) && Number.isFinite(exact))
      throw new Error(`the bound of element ${i} is NaN`);
    // Values that are exactly infinite or NaN are tested for being so.
    if (limit === Infinity && Number.isFinite(exact)) unbounded++;
    const error = Math.abs(values[i] - exact);
    if (!Number.isFinite(error)) {
      if (limit === Infinity && Number.isFinite(exact) && admitsOverflow(i)) continue;
      const isAnyNaN = Number.isNaN(values[i]) && mayBeNaN(Math.floor(i / columns));
      if (!isAnyNaN && !admitsNonFinite(values[i], exact, limit, format)) {
        nonFinite++;
        firstNonFinite ??= placeOf(quantity, shape, i);
      }
      continue;
    }
    const ratio = error === 0 ? 0 : error / limit;
    ratios[finite++] = ratio;
    if (ratio > 1) outside++;
    if (ratio > worstRatio) {
      worstRatio = ratio;
      worst = {
        at: placeOf(quantity, shape, i),
        value: values[i],
        oracle: exact,
        error,
        bound: limit,
      };
    }
  }
  const [median] = numbersOfRank(ratios.subarray(0, finite), [finite >> 1]);
  return {
    elements: values.length,
    outside,
    unbounded,
    nonFinite,
    worstRatio: Math.max(worstRatio, 0),
    medianRatio: median,
    worst,
    firstNonFinite,
  };
}

/** Elements that are no larger than underflow may take from them. */
export interface LostElements {
  readonly elements: number;
  /** Whether no element is larger than its bound: zeros and numbers of the other sign would be as good. */
  readonly isAll: boolean;
}

/** The result where nothing is lost to underflow. */
export const nothingLost: LostElements = { elements: 0, isAll: false };

/** Bounds of more than this many times the loss of one operation are not of underflow alone: sums and factors are far smaller. */
const mostTimes = 2 ** 64;

/** Whether elements may be lost to underflow: others are below such bounds, and so small. */
function mayBeLost(exact: Float64Array, total: Float64Array, underflow: number): boolean {
  return exact.some(
    (x, i) => x !== 0 && Math.abs(x) <= total[i] && total[i] < mostTimes * underflow,
  );
}

/**
 * Counts the elements that are within their bound of zero, and would not be if nothing underflowed.
 * @param total the worst case of a correct kernel
 * @param underflow the largest loss of one of its operations, absolutely
 * @param withoutUnderflow the worst case of a kernel without underflow in any operation; called where it
 * matters
 */
export function countLost(
  exact: Float64Array,
  total: Float64Array,
  underflow: number,
  withoutUnderflow: () => Float64Array,
): LostElements {
  if (!mayBeLost(exact, total, underflow)) return nothingLost;
  const least = withoutUnderflow();
  let elements = 0;
  let larger = 0;
  exact.forEach((x, i) => {
    const size = Math.abs(x);
    if (size > total[i]) larger++;
    else if (size > least[i]) elements++;
  });
  return { elements, isAll: elements > 0 && larger === 0 };
}
