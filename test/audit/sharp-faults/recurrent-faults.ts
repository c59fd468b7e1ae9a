import { pseudorandom } from '../../setup/problems.js';

/** A quantity of a recurrence whose errors are drawn: two heads of three chunks of 64 tokens. */
export const sizes = { heads: 2, tokens: 192, columns: 16, tile: 64 } as const;

/** The exact values, what the state before each chunk adds to them, and what an element errs by on average. */
export interface SpoiledRecurrence {
  readonly exact: Float64Array;
  readonly fromBefore: Float64Array;
  readonly deviation: number;
}

/** Errors that one statistic sees, and no other: the worst case of an element in deviations, and errors up to a factor. */
export interface RecurrentFault {
  readonly worst: number;
  readonly errors: (of: SpoiledRecurrence) => Float64Array;
}

/** The statistics of a recurrence, with their scope. */
export type RecurrentStatisticName =
  | 'non-finite'
  | 'element-bound'
  | 'element-spread'
  | `rms ${'tile' | 'head'}`
  | `scale ${'tile' | 'head'}`
  | 'bias head'
  | 'chunk tile';

/** Errors in some rows of the last head. */
function inRows(first: number, count: number, error: (element: number) => number): Float64Array {
  const { heads, tokens, columns } = sizes;
  const head = (heads - 1) * tokens;
  return Float64Array.from({ length: heads * tokens * columns }, (_, i) => {
    const row = Math.floor(i / columns) - head;
    return row < first || row >= first + count ? 0 : error(i);
  });
}

/** Errors of random signs. */
function scattered(first: number, count: number) {
  const random = pseudorandom(3);
  return inRows(first, count, () => Math.sign(random()));
}

const { tokens, tile } = sizes;
const usual = 1000;
const oneElement = () => {
  const errors = inRows(0, tokens, () => 0);
  errors[errors.length - 1] = 1;
  return errors;
};

/** By statistic, errors that it alone sees. */
export const recurrentFaults: Readonly<Record<RecurrentStatisticName, RecurrentFault>> = {
  'non-finite': { worst: usual, errors: () => oneElement().map((x) => (x === 1 ? NaN : 0)) },
  // Below what draws let expect of one element.
  'element-bound': { worst: 8, errors: oneElement },
  'element-spread': { worst: usual, errors: oneElement },
  'rms tile': { worst: usual, errors: () => scattered(tile, tile) },
  'rms head': { worst: usual, errors: () => scattered(0, tokens) },
  'scale tile': { worst: usual, errors: ({ exact }) => inRows(tile, tile, (i) => exact[i]) },
  'scale head': { worst: usual, errors: ({ exact }) => inRows(0, tokens, (i) => exact[i]) },
  'bias head': { worst: usual, errors: () => inRows(0, tokens, () => 1) },
  'chunk tile': {
    worst: usual,
    errors: ({ fromBefore }) => inRows(tile, tile, (i) => fromBefore[i]),
  },
};
