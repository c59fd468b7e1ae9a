/**
 * Strides of element [batch, head, query, key] of the whole shape in a tensor that broadcasts to it: its
 * sizes, from the last on, are those or 1.
 */
export interface BroadcastStrides {
  readonly batch: number;
  readonly head: number;
  readonly query: number;
  readonly key: number;
}

/** The strides of a tensor with at most four dimensions, 0 along broadcast ones. */
export function broadcastStrides(shape: readonly number[]): BroadcastStrides {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  const strides = [0, 0, 0, 0];
  let stride = 1;
  for (let axis = 3; axis >= 0; axis--) {
    strides[axis] = sizes[axis] === 1 ? 0 : stride;
    stride *= sizes[axis];
  }
  return { batch: strides[0], head: strides[1], query: strides[2], key: strides[3] };
}
