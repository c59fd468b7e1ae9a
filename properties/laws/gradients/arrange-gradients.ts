import { gradientQuantities, type ByGradient } from '../../../src/audit/index.js';
import type { Tensor } from '../../../src/formats/index.js';
import { rowElements, type ProblemShape } from '../../../src/problem/index.js';
import {
  gather,
  gatherTensor,
  indices,
  outputRows,
  rowsKept,
  type Arrangement,
  type RowArrangement,
} from '../transform-problem.js';

/** Something of every element of each gradient, in its canonical shape. */
export type GradientValues = ByGradient<Float64Array>;

/** A gradient of an output with its rows as arranged, to the bit, of rank 4. */
export function arrangeDout(
  dout: Tensor,
  shape: ProblemShape,
  arrangement: RowArrangement,
): Tensor {
  const { batches, heads, queries } = arrangement;
  return gatherTensor(dout, outputRows(shape, arrangement), [
    batches?.length ?? shape.batch,
    heads?.length ?? shape.heads,
    queries?.length ?? shape.queries,
  ]);
}

/** The gradients of a problem with their rows as arranged. */
export function arrangeGradients(
  values: GradientValues,
  shape: ProblemShape,
  arrangement: Arrangement,
): GradientValues {
  const keyRows = rowsKept(
    arrangement.batches ?? indices(shape.batch),
    arrangement.kvHeads ?? indices(shape.kvHeads),
    arrangement.keys ?? indices(shape.keys),
    shape.kvHeads,
    shape.keys,
  );
  const queryRows = outputRows(shape, arrangement);
  return mapGradients((name) => {
    const quantity = gradientQuantities.find((one) => one.name === name)!;
    const rows = quantity.axes[2] === 'keys' ? keyRows : queryRows;
    return gather(values[name], rows, rowElements(quantity, shape));
  });
}

/** Something of each gradient. */
export function mapGradients<T>(make: (name: keyof ByGradient<T>) => T): ByGradient<T> {
  const entries = gradientQuantities.map(({ name }) => [name, make(name)] as const);
  return Object.fromEntries(entries) as unknown as ByGradient<T>;
}
