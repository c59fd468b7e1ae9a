import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import { distanceToFormat, outputRounding, roundingSpread } from '../../bounds/index.js';
import type { GradientBound } from './group-bounds.js';

/** What fp64 leaves uncertain in all of this, many times over. */
const up = 1 + 2 ** -12;

/** fp32 sums beyond this may leave their range on the way. */
const largestSum = 2 ** 120;

/** What moves an element before it is rounded. */
export interface InnerError {
  /** Signed: what the stored forward moves. */
  readonly shift: number;
  readonly worst: number;
  readonly systematic: number;
  /** Of the rest, the square of what is known of it among it. */
  readonly variance: number;
}

/** `output-round`: writes the bound of element `at`, whose exact value is element `of` of the gradient. Theorem 8. */
export function finishElement(
  bound: GradientBound,
  at: number,
  { values, radius }: Gradient,
  of: number,
  { format, error }: { readonly format: FormatName; readonly error: InnerError },
): void {
  const value = values[of] + error.shift;
  const worst = error.worst * up + radius[of];
  bound.shift[at] = error.shift;
  const table = formats[format];
  // What is halfway to the next number beyond the largest becomes infinite.
  const most = table.maxFinite * (1 + unitRoundoff(table) / 2);
  const reach = Math.abs(value) + worst;
  if (!(reach < most && (format === 'fp64' || reach < largestSum))) {
    bound.total[at] = Infinity;
    bound.systematic[at] = Infinity;
    bound.deviation[at] = Infinity;
    if (!Number.isFinite(error.shift)) bound.shift[at] = 0;
    return;
  }
  const half = Math.min(
    outputRounding(format, value, worst),
    distanceToFormat(format, value) + worst,
  );
  bound.total[at] = worst + half;
  const systematic = Math.min(error.systematic + radius[of], worst);
  const rounded = roundingSpread(format, value, {
    predicted: 0,
    noise: Math.sqrt(error.variance),
    systematic,
  });
  bound.systematic[at] = systematic + rounded.systematic;
  bound.known[at] = rounded.known ?? 0;
  bound.deviation[at] = Math.sqrt(error.variance + rounded.variance + bound.known[at] ** 2);
}
