import { listed } from '../../../../words/index.js';
import { rowElements } from '../../../../problem/index.js';
import { axisOf, everywhere } from '../../../rows/index.js';
import type { ByGradient } from '../../gradient-quantities.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type Prediction } from '../prediction.js';

/** A failing gradient as heads of rows of columns. */
interface Laid {
  readonly given: GivenGradient;
  readonly exact: Float64Array;
  /** Number of heads over the batch. */
  readonly heads: number;
  readonly headsOfEntry: number;
  readonly rows: number;
  readonly columns: number;
}

function laidOf({ measured }: FailedGradients, given: GivenGradient): Laid {
  const { shape, gradients } = measured;
  const [batch, heads, rows] = given.quantity.axes;
  return {
    given,
    exact: gradients[given.quantity.name].exact.values,
    heads: shape[batch] * shape[heads],
    headsOfEntry: shape[heads],
    rows: shape[rows],
    columns: rowElements(given.quantity, shape),
  };
}

/** The source of an element: its head over the batch, row and column. */
type From = (
  head: number,
  row: number,
  column: number,
) => readonly [head: number, row: number, column: number];

function byName<T>(all: readonly Laid[], make: (one: Laid) => T): Partial<ByGradient<T>> {
  return Object.fromEntries(
    all.map((one) => [one.given.quantity.name, make(one)] as const),
  ) as Partial<ByGradient<T>>;
}

/** Exact gradients with their elements elsewhere. */
function moved(
  all: readonly Laid[],
  fromOf: (one: Laid) => From,
): Pick<Prediction, 'predicted' | 'sources'> {
  const sources = byName(all, (one) => {
    const { exact, rows, columns } = one;
    const from = fromOf(one);
    return Int32Array.from(exact, (_, i) => {
      const row = Math.floor(i / columns);
      const [fromHead, fromRow, fromColumn] = from(Math.floor(row / rows), row % rows, i % columns);
      return (fromHead * rows + fromRow) * columns + fromColumn;
    });
  });
  const predicted = byName(all, ({ given, exact }) =>
    Float64Array.from(sources[given.quantity.name] ?? [], (at) => exact[at]),
  );
  return { predicted, sources };
}

/** The largest distance from 1 of the slope of a head on the head that it is taken for. */
const nearness = 2 ** -3;

/** The slope of a given head on an exact one, and the part of its squares that this explains. */
function likeness({ given, exact, rows, columns }: Laid, head: number, from: number): boolean {
  const size = rows * columns;
  let [products, squares, own] = [0, 0, 0];
  for (let i = 0; i < size; i++) {
    const [x, y] = [given.values[head * size + i], exact[from * size + i]];
    products += x * y;
    squares += y * y;
    own += x * x;
  }
  const slope = products / squares;
  return Math.abs(slope - 1) < nearness && products ** 2 > (1 - nearness) * squares * own;
}

/** The exact head that every given one is, each once; null where one is none, or all are their own. */
function orderOfHeads(one: Laid): readonly number[] | null {
  const left = new Set(Array.from({ length: one.heads }, (_, head) => head));
  const order: number[] = [];
  for (let head = 0; head < one.heads; head++) {
    const from = [head, ...left].find((at) => left.has(at) && likeness(one, head, at));
    if (from === undefined) return null;
    left.delete(from);
    order.push(from);
  }
  return order.some((from, head) => from !== head) ? order : null;
}

/** Words for an order of heads, and the places where it is not the usual one. */
function describeOrder({ heads, headsOfEntry }: Laid, order: readonly number[], names: string) {
  const isOfBatch = order.every((from, head) => from % headsOfEntry === head % headsOfEntry);
  const entries = heads / headsOfEntry;
  const wrong = order.flatMap((from, head) => (from === head ? [] : [head]));
  const [shift] = order;
  const isShift = order.every(
    (from, head) =>
      Math.floor(from / headsOfEntry) === Math.floor(head / headsOfEntry) &&
      (from - head - shift + headsOfEntry) % headsOfEntry === 0,
  );
  if (isOfBatch) {
    const moves = order.flatMap((from, head) =>
      head % headsOfEntry === 0 && from !== head
        ? [`${head / headsOfEntry} is that of ${from / headsOfEntry}`]
        : [],
    );
    return {
      id: 'batches-exchanged',
      sentence: `batch entries of ${names} are in another order: ${listed(moves)}`,
      place: {
        ...everywhere,
        sequences: axisOf(
          wrong.map((head) => Math.floor(head / headsOfEntry)),
          entries,
        ),
      },
    };
  }
  if (isShift)
    return {
      id: 'heads-moved',
      sentence: `every head of ${names} is that of the head ${shift} further on`,
      place: everywhere,
    };
  const moves = wrong
    .slice(0, 6)
    .map((head) => `head ${head % headsOfEntry} is that of head ${order[head] % headsOfEntry}`);
  return {
    id: 'heads-permuted',
    sentence: `heads of ${names} are in another order: ${listed(moves)}`,
    wrong,
  };
}

/** Gradients whose heads, or batch entries, are in another order. */
function* orders(all: readonly Laid[]): Generator<Prediction> {
  const [first] = all;
  const order = orderOfHeads(first);
  if (order === null || !all.every(({ heads }) => heads === first.heads)) return;
  const names = listed(all.map(({ given }) => given.quantity.prose));
  const { wrong = [], ...found } = describeOrder(first, order, names);
  const { headsOfEntry, heads, given } = first;
  const axis = axisOf(new Set(wrong.map((head) => head % headsOfEntry)), headsOfEntry);
  const entries = axisOf(
    new Set(wrong.map((head) => Math.floor(head / headsOfEntry))),
    heads / headsOfEntry,
  );
  const isOfQueries = given.quantity.name === 'dq';
  const place = found.place ?? {
    ...everywhere,
    sequences: entries,
    ...(isOfQueries ? { heads: axis } : { kvHeads: axis }),
  };
  yield {
    ...found,
    place,
    ...moved(all, () => (head, ...at) => [order[head], ...at]),
  };
}

/** Memory of [batch, rows, heads] that is read as [batch, heads, rows], or the reverse. */
function* layouts(all: readonly Laid[]): Generator<Prediction> {
  const several = all.filter(({ headsOfEntry }) => headsOfEntry > 1);
  if (several.length < all.length) return;
  const names = listed(all.map(({ given }) => given.quantity.prose));
  const verb = all.length === 1 ? 'is' : 'are';
  const ways = [
    [
      `${names} ${verb} written as [batch, rows, heads, columns] and read as [batch, heads, rows, columns], as by a view in the place of a transpose`,
      ({ headsOfEntry: heads, rows }: Laid): From =>
        (head, row, column) => {
          const at = (head % heads) * rows + row;
          return [head - (head % heads) + (at % heads), Math.floor(at / heads), column];
        },
    ],
    [
      `${names} ${verb} written as [batch, heads, rows, columns] and read as [batch, rows, heads, columns], as by a view in the place of a transpose`,
      ({ headsOfEntry: heads, rows }: Laid): From =>
        (head, row, column) => {
          const at = row * heads + (head % heads);
          return [head - (head % heads) + Math.floor(at / rows), at % rows, column];
        },
    ],
  ] as const;
  for (const [sentence, from] of ways)
    yield {
      id: 'gradient-layout',
      sentence,
      ...moved(all, from),
    };
}

/** Gradients that are those of something else: each failing one has a candidate. */
function* exchanged(failed: FailedGradients, all: readonly Laid[]): Generator<Prediction> {
  const candidates = failed.given.map((given) => laidOf(failed, given));
  const sources = all.flatMap((one) => {
    const source = candidates.find(
      (other) =>
        other.given.quantity.name !== one.given.quantity.name &&
        other.exact.length === one.exact.length &&
        other.columns === one.columns &&
        likeness(
          { ...one, exact: other.exact, heads: 1, rows: other.exact.length / other.columns },
          0,
          0,
        ),
    );
    return source === undefined ? [] : [{ of: one.given.quantity, source }];
  });
  if (sources.length < all.length) return;
  const clauses = sources.map(({ of, source }) => `${of.prose} is ${source.given.quantity.prose}`);
  const bySource = (make: (source: Laid) => Float64Array) =>
    Object.fromEntries(sources.map(({ of, source }) => [of.name, make(source)]));
  yield {
    id: 'gradient-for-another',
    sentence: `${listed(clauses)}, as where one is written in the place of another`,
    predicted: bySource(({ exact }) => exact),
    sizes: bySource(
      ({ given: { quantity } }) => failed.measured.gradients[quantity.name].exact.magnitude,
    ),
  };
}

/** Rows or columns that are all shifted by the same number. */
function* shifts(all: readonly Laid[]): Generator<Prediction> {
  const [{ rows, columns }] = all;
  const names = listed(all.map(({ given }) => given.quantity.prose));
  const axis = all[0].given.quantity.axes[2];
  const one = axis === 'queries' ? 'query' : 'key';
  if (!all.every((other) => other.rows === rows && other.columns === columns)) return;
  for (const by of [1, -1])
    for (const wraps of [true, false]) {
      const from: From = (head, row, column) => {
        const at = row + by;
        if (at >= 0 && at < rows) return [head, at, column];
        return [head, wraps ? (at + rows) % rows : row, column];
      };
      yield {
        id: 'rows-moved',
        sentence: `every row of ${names} is that of the ${one} ${by > 0 ? 'behind' : 'before'}`,
        ...moved(all, () => from),
      };
    }
  if (columns % 2 !== 0) return;
  yield {
    id: 'columns-moved',
    sentence: `the halves of the columns of ${names} are exchanged`,
    ...moved(all, () => (head, row, column) => [head, row, (column + columns / 2) % columns]),
  };
  yield {
    id: 'columns-moved',
    sentence: `columns of ${names} that lie side by side are those of its halves, as by another kind of rotation`,
    ...moved(all, () => (head, row, column) => [
      head,
      row,
      (column >> 1) + (column % 2) * (columns / 2),
    ]),
  };
}

/** Gradients that are right, but in the wrong place: of another head, batch entry or row, of another layout, of one another. */
export function* movedFaults(failed: FailedGradients): Generator<Prediction> {
  const all = failed.given.filter((one) => fails(failed, one)).map((one) => laidOf(failed, one));
  if (all.length === 0) return;
  yield* orders(all);
  yield* layouts(all);
  yield* exchanged(failed, all);
  yield* shifts(all);
}
