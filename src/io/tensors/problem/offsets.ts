import { RequestError } from '../../../request-error.js';

/** The target of offsets, for messages: a tensor with that many rows, or pages. */
export interface OffsetTarget {
  readonly name: string;
  readonly length: number;
  readonly what: string;
}

/** @throws RequestError for offsets that do not begin with 0, decrease or end beyond their target */
export function checkOffsets(name: string, offsets: ArrayLike<number>, of: OffsetTarget): void {
  if (offsets.length === 0)
    throw new RequestError(`${name} is empty; give one number more than sequences`);
  if (offsets[0] !== 0)
    throw new RequestError(`${name} begins with ${offsets[0]}; it must begin with 0`);
  for (let i = 1; i < offsets.length; i++)
    if (offsets[i] < offsets[i - 1])
      throw new RequestError(
        `${name} decreases from ${offsets[i - 1]} to ${offsets[i]} at element ${i}; give where each sequence begins, in order`,
      );
  const last = offsets[offsets.length - 1];
  if (last > of.length)
    throw new RequestError(
      `${name} ends with ${last}, but ${of.name} has ${of.length} ${of.what}; make them agree`,
    );
}
