import { rowElements } from '../../../problem/index.js';
import type { GivenGradient } from '../judge-gradient.js';
import type { FailedGradients } from './failed-gradients.js';
import { fails, type Prediction } from './prediction.js';

/** A failing gradient with its sizes, beside the exact one. */
interface Stored {
  readonly name: GivenGradient['quantity']['name'];
  readonly prose: string;
  readonly values: Float64Array;
  readonly exact: Float64Array;
  /** The worst case of each element. */
  readonly total: Float64Array;
  /** Counted over the batch. */
  readonly heads: number;
  readonly headsOfBatch: number;
  readonly rows: number;
  readonly columns: number;
  /** What rows are called. */
  readonly of: 'queries' | 'keys';
}

function storedOf({ measured }: FailedGradients, { quantity, values }: GivenGradient): Stored {
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
  };
}

/** "batch 1, head 0" */
function placeOf({ headsOfBatch }: Stored, head: number): string {
  const batch = Math.floor(head / headsOfBatch);
  return `${batch === 0 ? '' : `batch ${batch}, `}head ${head % headsOfBatch}`;
}

/** Rows that are zero throughout, and should not be. */
function zeroRows(one: Stored): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose, of } = one;
  const isZero = (row: number) => {
    let isOff = false;
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      if (values[i] !== 0) return false;
      isOff ||= Math.abs(exact[i]) > total[i];
    }
    return isOff;
  };
  const zero = Array.from({ length: heads * rows }, (_, row) => row).filter(isZero);
  if (zero.length === 0) return null;
  const predicted = exact.slice();
  for (const row of zero) predicted.fill(0, row * columns, (row + 1) * columns);
  const [first, last] = [zero[0], zero[zero.length - 1]];
  const isOneRun =
    last - first + 1 === zero.length && Math.floor(first / rows) === Math.floor(last / rows);
  const where = isOneRun
    ? `${of} ${first % rows} to ${last % rows} of ${placeOf(one, Math.floor(first / rows))}`
    : `${zero.length} rows`;
  return {
    id: 'rows-zero',
    sentence: `${prose} is zero in ${where}, as where it is not written`,
    predicted: { [one.name]: predicted },
  };
}

/** The fewest elements that a sign is told by. */
const fewestElements = 8;

/** Columns of heads that have the other sign. */
function negatedColumns(one: Stored): Prediction | null {
  const { values, exact, total, columns, heads, rows, prose } = one;
  const predicted = exact.slice();
  const found: string[] = [];
  for (let head = 0; head < heads; head++)
    for (let column = 0; column < columns; column++) {
      let [off, negated] = [0, 0];
      for (let row = head * rows; row < (head + 1) * rows; row++) {
        const i = row * columns + column;
        if (Math.abs(values[i] - exact[i]) > total[i]) off++;
        if (Math.abs(values[i] + exact[i]) <= total[i]) negated++;
      }
      if (off === 0 || negated < rows || rows < fewestElements) continue;
      for (let row = head * rows; row < (head + 1) * rows; row++)
        predicted[row * columns + column] *= -1;
      found.push(`column ${column} of ${placeOf(one, head)}`);
    }
  if (found.length === 0 || found.length === heads * columns) return null;
  const more = found.length > 3 ? ` and ${found.length - 1} others` : '';
  return {
    id: 'column-sign',
    sentence: `${prose} has the wrong sign in ${more === '' ? found.join(', ') : found[0] + more}`,
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
        found.push(
          `${of} ${top} to ${top + size - 1}, columns ${left} to ${left + size - 1} of ${placeOf(one, head)}`,
        );
      }
  if (found.length === 0) return null;
  return {
    id: 'block-transposed',
    sentence: `${found.length === 1 ? `a block of ${size} × ${size}` : `${found.length} blocks of ${size} × ${size}`} of ${prose} ${found.length === 1 ? 'is' : 'are'} transposed: ${found.length === 1 ? '' : 'first '}${found[0]}`,
    predicted: { [one.name]: predicted },
  };
}

/** A gradient read with the row stride of another, within every head. */
function wrongStride(one: Stored, other: { readonly columns: number; readonly prose: string }) {
  const { exact, columns, rows, prose } = one;
  const ofHead = rows * columns;
  const predicted = exact.map((_, i) => {
    const inHead = i % ofHead;
    const from = Math.floor(inHead / columns) * other.columns + (inHead % columns);
    return from < ofHead ? exact[i - inHead + from] : 0;
  });
  return {
    id: 'wrong-stride',
    sentence: `${prose} is stored with the stride of ${other.prose}, ${other.columns} in the place of ${columns}`,
    predicted: { [one.name]: predicted },
  };
}

/** Gradients that are right but for how they are stored: told where one alone fails. */
export function* storedFaults(failed: FailedGradients): Generator<Prediction> {
  const failing = failed.given.filter((one) => fails(failed, one));
  if (failing.length !== 1) return;
  const one = storedOf(failed, failing[0]);
  const { qkDim, vDim } = failed.measured.shape;
  const predictions = [
    zeroRows(one),
    negatedColumns(one),
    ...blockSizes.map((size) => transposedBlocks(one, size)),
  ];
  for (const prediction of predictions) if (prediction !== null) yield prediction;
  if (qkDim === vDim) return;
  if (one.name === 'dv') yield wrongStride(one, { columns: qkDim, prose: 'dK' });
  else yield wrongStride(one, { columns: vDim, prose: 'dV' });
}
