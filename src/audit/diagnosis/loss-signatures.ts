import { problemMask, type KeyRange } from '../../problem/index.js';
import type { DiagnosisInput } from './diagnosis.js';
import type { RowReader } from './row-reader.js';

/** The kind of a lost row, by its contents. */
export type Loss = 'zero' | 'nan' | 'infinite';

/** e^−87.3 is the smallest normal fp32, e^−104 less than half the smallest subnormal. */
const underflowBegins = -87.3;
const underflowEnds = -104;

/** A property that may tell the lost rows from the others. */
export interface LossSignature {
  readonly id: string;
  readonly technique: string | null;
  readonly losses: readonly Loss[];
  readonly statement: string;
  /** true or false; null where either may be, as at the edge of a range. */
  readonly holds: (row: number) => boolean | null;
  /** Whether it explains the loss even when every row has the property. */
  readonly alone?: boolean;
}

/** Largest q·k over the visible keys, towards the largest score; −∞ scores harm nobody. */
function largestDot(reader: RowReader, row: number): number {
  const sign = Math.sign(reader.problem.scale);
  const dots = reader.dots(row, reader.kvHead(row));
  return reader
    .ranges(row)
    .reduce(
      (most, { begin, end }) =>
        dots.subarray(begin, end).reduce((a, b) => Math.max(a, sign * b), most),
      0,
    );
}

const overflowRanges = [
  { name: 'fp16', limit: 65504 },
  { name: 'fp32', limit: 2 ** 128 },
] as const;

function* overflowSignatures(reader: RowReader): Generator<LossSignature> {
  const scale = Math.abs(reader.problem.scale);
  for (const { name, limit } of overflowRanges)
    for (const [what, factor] of [
      ['q·k', 1],
      ['the scaled score', scale],
    ] as const)
      yield {
        id: 'score-overflow',
        technique: 'qk-accumulate',
        losses: ['nan', 'infinite', 'zero'],
        statement: `${what} overflows ${name} to infinity`,
        // Rounding to the format decides within its last ulp.
        holds: (row) => {
          const size = largestDot(reader, row) * factor;
          return Math.abs(size / limit - 1) < 2 ** -10 ? null : size > limit;
        },
        alone: true,
      };
}

interface MaskedTile {
  readonly size: number;
  readonly name: string;
  /** Whether some such tile of keys is masked entirely for a row. */
  readonly masked: (row: number) => boolean;
}

/** Whether some tile of `size` keys has none of a row's. */
function missesTile(ranges: readonly KeyRange[], size: number, keys: number): boolean {
  let next = 0;
  for (const { begin, end } of ranges) {
    if (Math.floor(begin / size) > next) return true;
    next = Math.ceil(end / size);
  }
  return next < Math.ceil(keys / size);
}

/** The keys that a flat row sees. */
function rangesOf({ problem, reference: { shape } }: MaskFacts) {
  const mask = problemMask(problem, shape);
  return (row: number) => mask.ranges(Math.floor(row / shape.queries), row % shape.queries);
}

/** The usual tiles and splits of the keys, with the rows that see nothing of one of them. */
function maskedTiles(facts: MaskFacts): MaskedTile[] {
  const { shape } = facts.reference;
  const ranges = rangesOf(facts);
  const tiles = [128, 64, 32, 16, 256].map((size) => ({ size, name: `tile of ${size} keys` }));
  const splits = [2, 3, 4, 8, 16].map((parts) => {
    const size = Math.ceil(shape.keys / parts);
    return { size, name: `split of ${size} keys` };
  });
  const known = new Set<number>();
  return [...tiles, ...splits]
    .filter(({ size }) => size < shape.keys && !known.has(size) && known.add(size))
    .map(({ size, name }) => ({
      size,
      name,
      masked: (row) => missesTile(ranges(row), size, shape.keys),
    }));
}

type MaskFacts = Pick<DiagnosisInput, 'problem' | 'reference'>;

function* maskSignatures({ problem, reference }: DiagnosisInput): Generator<LossSignature> {
  const ranges = rangesOf({ problem, reference });
  yield {
    id: 'rows-without-keys',
    technique: 'normalise',
    losses: ['nan', 'infinite'],
    statement: 'rows without visible keys are divided by a row sum of zero',
    holds: (row) => ranges(row).length === 0,
  };
  for (const { name, masked } of maskedTiles({ problem, reference }))
    yield {
      id: 'masked-tile',
      technique: 'rescale',
      losses: ['nan', 'infinite', 'zero'],
      statement: `a whole ${name} is masked for them, and its maximum of −∞ or sum of 0 is not guarded`,
      holds: masked,
    };
}

/** Whether every weight underflows fp32 when the maximum that is subtracted is 0. */
function underflowsAgainstZero({ reference }: DiagnosisInput, row: number): boolean | null {
  const maximum = reference.maximum[row];
  if (!Number.isFinite(maximum)) return null;
  return maximum < underflowEnds ? true : maximum > underflowBegins ? false : null;
}

function* valueSignatures(input: DiagnosisInput): Generator<LossSignature> {
  const common = {
    id: 'stale-zero-maximum',
    technique: 'scale-subtract',
    losses: ['zero', 'nan', 'infinite'] as const,
  };
  yield {
    ...common,
    statement:
      'all their scores are far below zero and the running maximum stays at 0, so that every weight underflows',
    holds: (row) => underflowsAgainstZero(input, row),
  };
  for (const { name, masked } of maskedTiles(input))
    yield {
      ...common,
      statement: `a whole ${name} is masked for them and leaves the running maximum at 0, far above all their scores, so that every weight underflows`,
      holds: (row) => (masked(row) ? underflowsAgainstZero(input, row) : false),
    };
}

function* placeSignatures({ reference }: DiagnosisInput): Generator<LossSignature> {
  const { queries, heads, batch } = reference.shape;
  for (const size of [128, 64, 32, 16])
    if (queries % size !== 0 && queries > size)
      yield {
        id: 'last-query-tile-not-written',
        technique: null,
        losses: ['zero', 'nan', 'infinite'],
        statement: `the last, partial tile of ${size} queries`,
        holds: (row) => row % queries >= queries - (queries % size),
      };
  if (queries > 1)
    yield {
      id: 'last-query-not-written',
      technique: null,
      losses: ['zero', 'nan', 'infinite'],
      statement: 'the last query of each head',
      holds: (row) => row % queries === queries - 1,
    };
  if (batch * heads > 1)
    yield {
      id: 'last-query-not-written',
      technique: null,
      losses: ['zero', 'nan', 'infinite'],
      statement: 'the very last row of all',
      holds: (row) => row === batch * heads * queries - 1,
    };
}

/** Every property that is known to cost a kernel whole rows, the most specific first. */
export function* lossSignatures(
  input: DiagnosisInput,
  reader: RowReader,
): Generator<LossSignature> {
  yield* overflowSignatures(reader);
  yield* valueSignatures(input);
  yield* maskSignatures(input);
  // A sample does not show which rows beside its own are lost.
  if (input.problem.rows === undefined) yield* placeSignatures(input);
}
