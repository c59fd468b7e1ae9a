import type { LaunchTensor, TensorView } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { listed, nearestName, plainText } from '../../words/index.js';

/** Row-major strides of a shape, in elements. */
function rowMajor(shape: readonly number[]): readonly number[] {
  const strides = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--)
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

/** A view whose tensor is there and holds all of it. */
export interface PlacedView {
  /** Its name in the contract. */
  readonly name: string;
  readonly tensor: LaunchTensor;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** The most elements of a view: what one array holds of their places. */
const mostElements = 2 ** 31;

/**
 * A view of a launch's tensors.
 *
 * @param name its name in the contract, for messages
 * @throws RequestError for an unknown tensor, strides of another rank, and a view that reaches beyond its tensor
 */
export function placeView(
  name: string,
  { tensor, shape, strides: given, offset }: TensorView,
  tensors: ReadonlyMap<string, LaunchTensor>,
): PlacedView {
  const whole = tensors.get(tensor);
  const fail = (what: string): never => {
    throw new RequestError(`${name} ${what}`);
  };
  if (whole === undefined) {
    const nearest = nearestName(tensor, tensors.keys());
    const names = plainText(listed([...tensors.keys()].slice(0, 20)));
    return fail(
      `is a view of "${plainText(tensor)}", which is no tensor of the launch; ` +
        (nearest === null
          ? `there are ${names || 'none'}`
          : `did you mean "${plainText(nearest)}"?`),
    );
  }
  const strides = given ?? rowMajor(shape);
  if (strides.length !== shape.length)
    fail(
      `has ${strides.length} strides for ${shape.length} sizes; give as many, or leave them out for row-major order`,
    );
  const elements = shape.reduce((product, size) => product * size, 1);
  if (elements > mostElements) fail(`has ${elements} elements; give at most ${mostElements}`);
  const held = (8 * whole.bytes.length) / whole.elementBits;
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * strides[axis], offset);
  if (elements > 0 && last >= held)
    fail(
      `reaches element ${last} of "${plainText(tensor)}", which has ${held}; mend its shape, strides or offset`,
    );
  return { name, tensor: whole, shape, strides, offset };
}

/**
 * The places in its tensor of a view's elements, in the view's row-major order.
 * @throws RequestError where they do not fit in memory
 */
export function placesOf({ name, shape, strides, offset }: PlacedView): Float64Array {
  let places: Float64Array;
  const count = shape.reduce((product, size) => product * size, 1);
  try {
    places = new Float64Array(count);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RequestError(`${name} has ${count} elements, which do not fit in memory; give fewer`);
  }
  if (count === 0) return places;
  places[0] = offset;
  // Each axis, from the innermost one out, repeats what is there, a stride further.
  let filled = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    for (let i = 1; i < shape[axis]; i++)
      for (let j = 0; j < filled; j++) places[i * filled + j] = places[j] + i * strides[axis];
    filled *= shape[axis];
  }
  return places;
}

/** The bytes of a view's elements, in the view's row-major order, in an array of their own. */
export function viewBytes(view: PlacedView): Uint8Array {
  const { bytes, elementBits } = view.tensor;
  const size = elementBits / 8;
  const places = placesOf(view);
  const target = new Uint8Array(places.length * size);
  places.forEach((place, i) =>
    target.set(bytes.subarray(place * size, (place + 1) * size), i * size),
  );
  return target;
}
