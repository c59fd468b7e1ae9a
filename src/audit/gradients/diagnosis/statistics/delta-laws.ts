import { decodeTensor, formats, round, type FormatName } from '../../../../formats/index.js';
import { formatNumber } from '../../../../words/index.js';
import type { GradientDeclaration } from '../../premises/gradient-declaration.js';
import type { FailedGradients } from '../failed-gradients.js';
import { storedDelta } from '../replay/stored-statistics.js';

/** A row sum that a kernel may take for D. */
export interface DeltaLaw {
  readonly id: string;
  /** Behind "the row sum D = dO·O". */
  readonly words: string;
  /** The D that is used for each row, [batch, heads, queries]. */
  readonly deltas: Float64Array;
  /** The rows whose D it changes, 1 each, where the rule itself leaves some alone. */
  readonly rows?: Uint8Array;
  /** The premise of a correct kernel that takes it. */
  readonly declares?: GradientDeclaration;
}

/** Distances, in rows, by which reads are off. */
const tiles = [32, 64, 128] as const;

/** The D of other rows, given by the row that is read. */
function ofRows(
  means: Float64Array,
  [id, words]: readonly [id: string, words: string],
  from: (row: number) => number,
  isTouched?: (row: number) => boolean,
): DeltaLaw {
  const law = { id, words, deltas: means.map((_, row) => means[from(row)] ?? 0) };
  return isTouched === undefined
    ? law
    : { ...law, rows: Uint8Array.from(means, (_, row) => (isTouched(row) ? 1 : 0)) };
}

/** A D of other rows, heads or batch entries. */
function* ofOthers(
  { measured: { shape } }: FailedGradients,
  means: Float64Array,
): Generator<DeltaLaw> {
  const { batch, heads, queries, groupSize } = shape;
  const count = means.length;
  const around = (row: number) => (row + count) % count;
  for (const by of [-1, 1]) {
    const what =
      by < 0
        ? (['delta-previous-row', 'is that of the row before'] as const)
        : (['delta-next-row', 'is that of the row behind'] as const);
    const isEnd = (row: number) => row % queries === (by < 0 ? 0 : queries - 1);
    yield ofRows(means, what, (row) => (isEnd(row) ? row : row + by));
    yield ofRows(means, what, (row) => around(row + by));
    yield ofRows(means, what, (row) => row + by);
  }
  for (const by of tiles)
    for (const sign of [-1, 1]) {
      const isInside = (row: number) => {
        const query = (row % queries) + sign * by;
        return query >= 0 && query < queries;
      };
      if (by < queries)
        yield ofRows(
          means,
          ['delta-of-other-rows', `is that of ${by} rows ${sign < 0 ? 'before' : 'behind'}`],
          (row) => (isInside(row) ? row + sign * by : row),
          isInside,
        );
    }
  if (heads > 1) {
    const entry = heads * queries;
    for (const by of [queries, -queries]) {
      const words = `is that of the ${by > 0 ? 'next head' : 'head before'}`;
      const what = ['delta-of-other-head', words] as const;
      yield ofRows(means, what, (row) => around(row + by));
      yield ofRows(
        means,
        what,
        (row) => row - (row % entry) + (((row % entry) + by + entry) % entry),
      );
    }
    yield ofRows(
      means,
      ['delta-of-other-head', 'is that of the first head'],
      (row) => row - (row % entry) + (row % queries),
    );
    if (groupSize > 1 && groupSize < heads)
      yield ofRows(
        means,
        ['delta-of-other-head', 'is that of the first head of a group'],
        (row) => {
          const head = Math.floor(row / queries);
          return (head - (head % groupSize)) * queries + (row % queries);
        },
      );
  }
  if (batch > 1) {
    const entry = heads * queries;
    const what = ['delta-of-other-batch', 'is that of another batch entry'] as const;
    for (const by of batch === 2 ? [entry] : [entry, -entry])
      yield ofRows(means, what, (row) => around(row + by));
    yield ofRows(
      means,
      ['delta-of-other-batch', 'is that of the first batch entry'],
      (row) => row % entry,
    );
  }
}

/** dO and O, decoded, and how long their rows are. */
interface Factors {
  readonly dout: Float64Array;
  readonly out: Float64Array;
  readonly columns: number;
}

/** Σ dO·O over some columns, of the O of some row. */
function sums(
  { dout, out, columns }: Factors,
  [begin, end]: readonly [number, number],
  from: (row: number) => number = (row) => row,
  term: (x: number) => number = (x) => x,
): Float64Array {
  return Float64Array.from({ length: dout.length / columns }, (_, row) => {
    const at = from(row) * columns;
    if (!(at >= 0 && at < out.length)) return 0;
    let sum = 0;
    for (let c = begin; c < end; c++) sum += term(dout[row * columns + c] * out[at + c]);
    return sum;
  });
}

/** A D of some columns alone, of the O of others, or of another O. */
function* ofOutputs(failed: FailedGradients, means: Float64Array): Generator<DeltaLaw> {
  const { problem, measured, forward, dout } = failed;
  const { queries, heads, vDim } = measured.shape;
  const out =
    forward.out === null ? measured.reference.quantities.out.values : decodeTensor(forward.out);
  const factors: Factors = { dout: decodeTensor(dout), out, columns: vDim };
  const all = [0, vDim] as const;
  const half = vDim >> 1;
  if (half > 0)
    for (const [begin, end] of [
      [0, half],
      [half, vDim],
    ] as const)
      yield {
        id: 'delta-columns',
        words: `is summed over columns ${begin} to ${end - 1} of ${vDim} alone`,
        deltas: sums(factors, [begin, end]),
      };
  for (const [by, words] of [
    [-queries, 'the head before'],
    [queries, 'the next head'],
    [-1, 'the row before'],
    [1, 'the next row'],
  ] as const) {
    const count = means.length;
    const isInside = (row: number) => row + by >= 0 && row + by < count;
    const law = (from: (row: number) => number): DeltaLaw => ({
      id: 'delta-of-other-output',
      words: `is made of the O of ${words}`,
      deltas: sums(factors, all, from),
    });
    yield law((row) => (isInside(row) ? row + by : row));
    yield law((row) => (row + by + count) % count);
  }
  if (problem.sink !== undefined) {
    const logits = decodeTensor(problem.sink.logits);
    const { denominator } = measured.reference;
    yield {
      id: 'delta-without-sink',
      words: 'is made of an O whose row sums lack the sink',
      deltas: means.map((mean, row) => {
        const share = Math.exp(logits[Math.floor(row / queries) % heads] - denominator[row]);
        return mean / (1 - share);
      }),
    };
  }
  for (const format of ['bf16', 'fp16'] as const) yield* inShort(failed, factors, format);
}

/** A D that is rounded to 16 bits, or whose products are. */
function* inShort(
  { forward }: FailedGradients,
  factors: Factors,
  format: FormatName,
): Generator<DeltaLaw> {
  if (forward.out === null) return;
  const short = (x: number) => round(formats[format], x);
  const all = [0, factors.columns] as const;
  const exact = sums(factors, all);
  const products = sums(factors, all, undefined, short);
  yield {
    id: 'delta-narrow',
    words: `is made of products that are rounded to ${format}`,
    deltas: products,
    declares: { deltaProducts: format },
  };
  yield {
    id: 'delta-narrow',
    words: `is made of products that are rounded to ${format}, and rounded to it`,
    deltas: products.map(short),
    declares: { deltaProducts: format, deltaSums: format },
  };
  yield {
    id: 'delta-narrow',
    words: `is rounded to ${format}`,
    deltas: exact.map(short),
    declares: { deltaSums: format },
  };
}

/** D of rows as found, and the error that each may have: Infinity where nothing is known. */
export interface FoundDeltas {
  readonly deltas: Float64Array;
  readonly tolerance: Float64Array;
}

/** The relative distance within which a factor is one with a name, and beyond which it differs from 1. */
const nearness = 2 ** -6;

/** A D that is multiplied by one number in some rows. */
export function* deltaFactor(
  { problem: { scale, dropout } }: FailedGradients,
  means: Float64Array,
  { deltas, tolerance }: FoundDeltas,
  isIn: (row: number) => boolean,
): Generator<DeltaLaw> {
  let [products, squares] = [0, 0];
  means.forEach((mean, row) => {
    const weight = 1 / tolerance[row] ** 2;
    if (!isIn(row) || !(weight > 0 && weight < Infinity)) return;
    products += weight * mean * deltas[row];
    squares += weight * mean * mean;
  });
  const factor = products / squares;
  if (!Number.isFinite(factor) || Math.abs(factor - 1) < nearness) return;
  if ([-1, 0, 2].some((named) => Math.abs(factor - named) < nearness)) return;
  const kept = dropout === undefined ? 1 : 1 - dropout.probability;
  const named = [
    [scale, ' (the scale)'],
    [1 / scale, ' (1 over the scale)'],
    [kept, ' (the share 1 − p that dropout keeps)'],
    [1 / kept, ' (1 / (1 − p) of dropout)'],
  ] as const;
  const close = named.find(
    ([of]) => Math.abs(of - 1) > nearness && Math.abs(factor / of - 1) < nearness,
  );
  const [of, words] = close ?? [factor, ''];
  yield {
    id: 'delta-factor',
    words: `is ${formatNumber(of)} times what it should be${words}`,
    deltas: means.map((mean) => of * mean),
  };
}

/** The row sums that kernels may take for D. */
export function* deltaLaws(failed: FailedGradients): Generator<DeltaLaw> {
  const stored = storedDelta(failed);
  const means = stored?.every(Number.isFinite) === true ? stored : failed.measured.mean.values;
  yield { id: 'delta-missing', words: 'is missing', deltas: means.map(() => 0) };
  yield {
    id: 'delta-sign',
    words: 'is added where it is to be subtracted',
    deltas: means.map((mean) => -mean),
  };
  yield { id: 'delta-twice', words: 'is subtracted twice', deltas: means.map((mean) => 2 * mean) };
  yield* ofOthers(failed, means);
  yield* ofOutputs(failed, means);
}
