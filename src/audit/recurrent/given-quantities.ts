import { decodeToFloat64, formats } from '../../formats/index.js';
import {
  recurrentQuantities,
  recurrentQuantity,
  recurrentQuantityShape,
  recurrentTensorName,
  type ProblemShape,
  type Quantity,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentShape,
  type Tensor,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { GivenQuantity } from '../kernel-outputs.js';

type RecurrentAxes = (typeof recurrentQuantities)[RecurrentQuantityName]['of'];

/** A quantity of a recurrence with the sizes of its axes: [batch or sequences, heads, tokens or rows of a state, elements]. */
export interface RecurrentRows {
  readonly name: RecurrentQuantityName;
  readonly quantity: Quantity;
  readonly shape: ProblemShape;
}

/** The sizes of a quantity's axes: batch or sequences, heads, tokens or rows of a state, elements. */
function axesOf(
  of: RecurrentAxes,
  [first, second, third, vDim = 1]: readonly number[],
): readonly number[] {
  if (of === 'heads') return [1, first, 1, second ?? 1];
  return of === 'states' ? [first, second, third, vDim] : [first, third, second, vDim];
}

/** The rows of a quantity; null where the problem does not have it. */
export function recurrentRows(
  name: RecurrentQuantityName,
  problem: RecurrentProblem,
  shape: RecurrentShape,
): RecurrentRows | null {
  const sizes = recurrentQuantityShape(name, problem, shape);
  if (sizes === null) return null;
  const { prose, label, parts, of, option } = recurrentQuantity(name, problem.family);
  const [batch, heads, queries, vDim] = axesOf(of, sizes);
  return {
    name,
    quantity: {
      name: recurrentTensorName(problem.family, name),
      axes: ['batch', 'heads', 'queries', 'vDim'],
      rowWord: of === 'tokens' ? 'token' : 'row',
      row: 'vector',
      prose,
      label,
      parts,
      unit: `units of ${label}`,
      magnitude: 'its terms',
      isExpected: false,
      option,
    },
    shape: { batch, heads, kvHeads: heads, groupSize: 1, queries, keys: 0, qkDim: vDim, vDim },
  };
}

/** Values as kernels write them, in the order of {@link RecurrentRows}: a head's tokens one after the other. */
export function byHead(
  values: Float64Array,
  { name, shape: { batch, heads, queries, vDim } }: RecurrentRows,
): Float64Array {
  if (recurrentQuantities[name].of !== 'tokens' || heads === 1) return values;
  const turned = new Float64Array(values.length);
  for (let entry = 0; entry < batch; entry++)
    for (let token = 0; token < queries; token++)
      for (let head = 0; head < heads; head++) {
        const from = ((entry * queries + token) * heads + head) * vDim;
        const to = ((entry * heads + head) * queries + token) * vDim;
        for (let i = 0; i < vDim; i++) turned[to + i] = values[from + i];
      }
  return turned;
}

/**
 * A kernel's tensor, decoded, in the order of {@link RecurrentRows}.
 * @throws RequestError for a tensor of another shape
 */
export function decodeRecurrent(
  rows: RecurrentRows,
  tensor: Tensor,
  problem: RecurrentProblem,
  shape: RecurrentShape,
): GivenQuantity {
  const wanted = recurrentQuantityShape(rows.name, problem, shape) ?? [];
  if (String(tensor.shape) !== String(wanted))
    throw new RequestError(
      `${rows.quantity.prose} has shape [${tensor.shape.join(', ')}] but the problem asks for [${wanted.join(', ')}]; pass the matching tensor`,
    );
  const values = new Float64Array(tensor.data.length);
  decodeToFloat64(tensor.data, formats[tensor.format], values);
  return { quantity: rows.quantity, format: tensor.format, values: byHead(values, rows) };
}
