import { decodeTensor, type Tensor } from '../../formats/index.js';
import type { Problem, ProblemShape, Quantity } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { Coordinates, GivenQuantity } from '../kernel-outputs.js';
import type { SharedGradientName } from './gradient-quantities.js';

/** The tensors of a problem that these gradients are of, and their names. */
const sources = {
  dbias: { name: 'bias', tensorOf: ({ bias }: Problem) => bias },
  dsink: { name: 'sink', tensorOf: ({ sink }: Problem) => sink?.logits },
} as const satisfies Readonly<Record<SharedGradientName, object>>;

/** The tensor of a problem that a gradient belongs to; null where there is none. */
export function gradientSource(problem: Problem, name: SharedGradientName): Tensor | null {
  return sources[name].tensorOf(problem) ?? null;
}

/** A shape with as many sizes as another, leading sizes of 1 left out or added. */
function aligned(shape: readonly number[], count: number): readonly number[] {
  const extra = Math.max(0, shape.length - count);
  const isOne = shape.slice(0, extra).every((size) => size === 1);
  return isOne ? [...Array<number>(count).fill(1), ...shape].slice(-count) : shape;
}

/**
 * The sizes of the gradient of a bias or of sinks, as those of a problem: 1 along the axes that it is broadcast along.
 * @throws RequestError for a problem that has no such tensor
 */
export function sharedShape(
  problem: Problem,
  shape: ProblemShape,
  name: SharedGradientName,
): ProblemShape {
  const source = gradientSource(problem, name);
  if (source === null)
    throw new RequestError(
      `${name} is to be judged, but the problem has no ${sources[name].name}; leave it out, or give the ${sources[name].name}`,
    );
  if (name === 'dsink') return { ...shape, batch: 1, queries: 1 };
  const [batch, heads, queries, keys] = aligned(source.shape, 4);
  return { ...shape, batch, heads, queries, keys };
}

/**
 * The gradient of a bias or of sinks, decoded: in the shape of its tensor, apart from sizes of 1.
 * @throws RequestError for another shape, and for a problem that has no such tensor
 */
export function decodeShared(
  quantity: Quantity & { readonly name: SharedGradientName },
  tensor: Tensor,
  problem: Problem,
  shape: ProblemShape,
): GivenQuantity & { readonly quantity: { readonly name: SharedGradientName } } {
  const { name, prose } = quantity;
  sharedShape(problem, shape, name);
  const wanted = name === 'dsink' ? [shape.heads] : gradientSource(problem, name)!.shape;
  const given = tensor.shape;
  const isSame =
    name === 'dsink'
      ? String(given.filter((size) => size !== 1)) === String(wanted.filter((size) => size !== 1))
      : String(aligned(given, 4)) === String(aligned(wanted, 4));
  if (!isSame)
    throw new RequestError(
      `${prose} has shape [${given.join(', ')}] but the ${sources[name].name} has [${wanted.join(', ')}]; give it in that shape, summed over what the ${sources[name].name} is broadcast to`,
    );
  return { quantity, format: tensor.format, values: decodeTensor(tensor) };
}

/**
 * Makes a function that gives the place of an element: by its key in place of a column, and without the axes that it is broadcast
 * along.
 */
export function placeShared(
  name: SharedGradientName,
  { queries }: ProblemShape,
  { sequences }: Pick<Problem, 'sequences'>,
): (at: Coordinates) => Coordinates {
  return ({ batch, head, query, column }) => ({
    // The batch of a bias counts packed sequences.
    ...(sequences === undefined || name === 'dsink' ? { batch } : { batch: 0, sequence: batch }),
    head,
    ...(name === 'dbias' && queries > 1 && query !== undefined ? { query } : {}),
    ...(name === 'dbias' && column !== undefined ? { key: column } : {}),
  });
}
