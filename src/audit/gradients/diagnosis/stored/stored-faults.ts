import { rowElements, type ProblemShape, type RowsOf } from '../../../../problem/index.js';
import { formatCount } from '../../../../words/index.js';
import { axisOf, placeOfKeys, placeOfRows, type Place } from '../../../rows/index.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type Prediction } from '../prediction.js';

/** A failing gradient with its sizes, beside the exact one. */
interface Stored {
  readonly name: GivenGradient['quantity']['name'];
  readonly prose: string;
  readonly values: Float64Array;
  readonly exact: Float64Array;
  /** The worst case of each element. */
  readonly total: Float64Array;
  /** Number of heads, counted over the batch. */
  readonly heads: number;
  readonly headsOfBatch: number;
  readonly rows: number;
  readonly columns: number;
  /** The name of the rows. */
  readonly of: 'queries' | 'keys';
  /** The layout of the rows in the problem. */
  readonly layout: RowsOf & { readonly shape: ProblemShape };
}

function storedOf(
  { problem, measured }: FailedGradients,
  { quantity, values }: GivenGradient,
): Stored {
  const { shape, gradients } = measured;
  const [batch, heads, rows] = quantity.axes;
  const { exact, bound } = gradients[quantity.name];
  return {
    name: quantity.name,
    prose: quantity.prose,
    values,
    exact: exact.values,
    total: bound.total,
    heads: shape[batch] * shape[heads],
    headsOfBatch: shape[heads],
    rows: shape[rows],
    columns: rowElements(quantity, shape),
    of: rows === 'queries' ? 'queries' : 'keys',
    layout: { ...problem, shape },
  };
}

/** "batch 1, head 0" */
function placeOf({ headsOfBatch }: Stored, head: number): string {
  const batch = Math.floor(head / headsOfBatch);
  return `${batch === 0 ? '' : `batch ${batch}, `}head ${head % headsOfBatch}`;
}

/** A column of a head, which counts over the batch. */
interface HeadColumn {
  readonly head: number;
  readonly column: number;
}

/** Columns of heads that satisfy a condition. */
function columnsOfHeads(
  { heads, columns }: Stored,
  holds: (column: number, head: number) => boolean,
): readonly HeadColumn[] {
  return Array.from({ length: heads * columns }, (_, at) => ({
    head: Math.floor(at / columns),
    column: at % columns,
  })).filter(({ head, column }) => holds(column, head));
}

/** The place of columns: that of all heads that have one. */
function placeOfColumns(one: Stored, found: readonly HeadColumn[]): Place {
  const { rows, columns } = one;
  const heads = [...new Set(found.map(({ head }) => head))];
  const all = heads.flatMap((head) => Array.from({ length: rows }, (_, row) => head * rows + row));
  const members = found.map(({ column }) => column);
  return { ...placeOfRowsIn(one, all), columns: axisOf(members, columns) };
}

/** The place of rows of a gradient, which count over its heads and the batch. */
function placeOfRowsIn({ of, layout }: Stored, rows: readonly number[]): Place {
  return of === 'queries' ? placeOfRows(rows, layout) : placeOfKeys(rows, layout);
}

/** Some rows, and the rows beside them in their heads that are rightly zero: these are not written either. */
function withZeros({ values, columns, rows, heads }: Stored, some: readonly number[]): number[] {
  const found = new Set(some);
  const isZero = (row: number) => {
    for (let i = row * columns; i < (row + 1) * columns; i++) if (values[i] !== 0) return false;
    return true;
  };
  const walk = (from: number, step: 1 | -1) => {
    const head = Math.floor(from / rows);
    for (
      let row = from + step;
      row >= 0 && row < heads * rows && Math.floor(row / rows) === head;
      row += step
    ) {
      if (found.has(row) || !isZero(row)) return;
      found.add(row);
    }
  };
  for (const row of some) {
    walk(row, 1);
    walk(row, -1);
  }
  return [...found].sort((a, b) => a - b);
}

/** Rows that are zero throughout, and should not be. */
function zeroRows(one: Stored): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose } = one;
  const isZero = (row: number) => {
    let isOff = false;
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      if (values[i] !== 0) return false;
      isOff ||= Math.abs(exact[i]) > total[i];
    }
    return isOff;
  };
  const off = Array.from({ length: heads * rows }, (_, row) => row).filter(isZero);
  if (off.length === 0) return null;
  // Beside these rows that are rightly zero, as those of keys that no query sees, are none that are not written.
  const zero = withZeros(one, off).filter((row) =>
    exact.subarray(row * columns, (row + 1) * columns).some((x) => x !== 0),
  );
  const predicted = exact.slice();
  for (const row of zero) predicted.fill(0, row * columns, (row + 1) * columns);
  return {
    id: 'rows-zero',
    sentence: `${prose} is zero in ${formatCount(zero.length, 'row')}, as where it is not written`,
    place: placeOfRowsIn(one, zero),
    predicted: { [one.name]: predicted },
  };
}

/** Columns of heads that are zero throughout, and should not be. */
function zeroColumns(one: Stored): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose } = one;
  const isZero = (column: number, head: number) => {
    let isOff = false;
    for (let row = head * rows; row < (head + 1) * rows; row++) {
      const i = row * columns + column;
      if (values[i] !== 0) return false;
      isOff ||= Math.abs(exact[i]) > total[i];
    }
    return isOff;
  };
  const found = columnsOfHeads(one, isZero);
  if (found.length === 0 || found.length === heads * columns) return null;
  const predicted = exact.slice();
  for (const { head, column } of found)
    for (let row = head * rows; row < (head + 1) * rows; row++)
      predicted[row * columns + column] = 0;
  return {
    id: 'columns-zero',
    sentence: `${prose} is zero in ${formatCount(new Set(found.map(({ column }) => column)).size, 'column')}, as where a part of the head dimension is not written`,
    place: placeOfColumns(one, found),
    predicted: { [one.name]: predicted },
  };
}

/** The fewest elements that a sign is told by. */
const fewestElements = 8;

/** Columns of heads that have the other sign. */
function negatedColumns(one: Stored): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose } = one;
  const isNegated = (column: number, head: number) => {
    let [off, negated] = [0, 0];
    for (let row = head * rows; row < (head + 1) * rows; row++) {
      const i = row * columns + column;
      if (Math.abs(values[i] - exact[i]) > total[i]) off++;
      if (Math.abs(values[i] + exact[i]) <= total[i]) negated++;
    }
    return off > 0 && negated === rows;
  };
  if (rows < fewestElements) return null;
  const found = columnsOfHeads(one, isNegated);
  if (found.length === 0 || found.length === heads * columns) return null;
  const predicted = exact.slice();
  for (const { head, column } of found)
    for (let row = head * rows; row < (head + 1) * rows; row++)
      predicted[row * columns + column] *= -1;
  return {
    id: 'column-sign',
    sentence: `${prose} has the wrong sign in ${formatCount(new Set(found.map(({ column }) => column)).size, 'column')}`,
    place: placeOfColumns(one, found),
    predicted: { [one.name]: predicted },
  };
}

/** Sizes of square blocks that are stored with rows for columns. */
const blockSizes = [16, 8, 4] as const;

/** Blocks of a size, at multiples of it, with rows for columns. */
function transposedBlocks(one: Stored, size: number): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose, of } = one;
  const predicted = exact.slice();
  const found: string[] = [];
  const within: number[] = [];
  for (let head = 0; head < heads; head++)
    for (let top = 0; top + size <= rows; top += size)
      for (let left = 0; left + size <= columns; left += size) {
        const at = (i: number, j: number) => (head * rows + top + i) * columns + left + j;
        let [off, turned] = [0, 0];
        for (let i = 0; i < size; i++)
          for (let j = 0; j < size; j++) {
            const [to, from] = [at(i, j), at(j, i)];
            if (Math.abs(values[to] - exact[to]) > total[to]) off++;
            if (Math.abs(values[to] - exact[from]) <= Math.max(total[to], total[from])) turned++;
          }
        if (off === 0 || turned < size * size) continue;
        for (let i = 0; i < size; i++)
          for (let j = 0; j < size; j++) predicted[at(i, j)] = exact[at(j, i)];
        for (let i = 0; i < size; i++) within.push(head * rows + top + i);
        found.push(
          `${of} ${top} to ${top + size - 1}, columns ${left} to ${left + size - 1} of ${placeOf(one, head)}`,
        );
      }
  if (found.length === 0) return null;
  return {
    id: 'block-transposed',
    sentence: `${found.length === 1 ? `a block of ${size} × ${size}` : `${found.length} blocks of ${size} × ${size}`} of ${prose} ${found.length === 1 ? 'is' : 'are'} transposed: ${found.length === 1 ? '' : 'first '}${found[0]}`,
    place: placeOfRowsIn(one, within),
    predicted: { [one.name]: predicted },
  };
}

/** A gradient read with the row stride of another, within every head. */
function wrongStride(one: Stored, other: { readonly columns: number; readonly prose: string }) {
  const { exact, columns, rows, prose } = one;
  const ofHead = rows * columns;
  // Beyond the head there is nothing.
  const isInside = new Uint8Array(exact.length);
  const sources = Int32Array.from(exact, (_, i) => {
    const inHead = i % ofHead;
    const from = Math.floor(inHead / columns) * other.columns + (inHead % columns);
    if (from >= ofHead) return i;
    isInside[i] = 1;
    return i - inHead + from;
  });
  const predicted = exact.map((_, i) => (isInside[i] === 1 ? exact[sources[i]] : 0));
  return {
    id: 'wrong-stride',
    sentence: `${prose} is stored with the stride of ${other.prose}, ${other.columns} in the place of ${columns}`,
    predicted: { [one.name]: predicted },
    sources: { [one.name]: sources },
  };
}

/** Gradients that are right except for how they are stored: told where one alone fails. */
export function* storedFaults(failed: FailedGradients): Generator<Prediction> {
  const failing = failed.given.filter((one) => fails(failed, one));
  if (failing.length !== 1) return;
  const one = storedOf(failed, failing[0]);
  const { qkDim, vDim } = failed.measured.shape;
  const predictions = [
    zeroRows(one),
    zeroColumns(one),
    negatedColumns(one),
    ...blockSizes.map((size) => transposedBlocks(one, size)),
  ];
  for (const prediction of predictions) if (prediction !== null) yield prediction;
  if (qkDim === vDim) return;
  if (one.name === 'dv') yield wrongStride(one, { columns: qkDim, prose: 'dK' });
  else yield wrongStride(one, { columns: vDim, prose: 'dV' });
}
