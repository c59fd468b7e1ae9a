import type { Tensor } from '../../../formats/index.js';
import { RequestError } from '../../../request-error.js';
import { elementBytes, elementsOver } from '../element-storage.js';
import { printable, quoted } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';

/**
 * A [batch, seqlen, heads, dim] (or [seqlen, heads, dim]) tensor as [batch, heads, seqlen, dim] (or
 * [heads, seqlen, dim]), copied; a tensor of any other rank is returned as it is.
 */
export function toHeadsFirst(tensor: Tensor): Tensor {
  const { format, shape, data } = tensor;
  if (shape.length !== 3 && shape.length !== 4) return tensor;
  const [seqlen, heads, dim] = shape.slice(-3) as [number, number, number];
  const batch = shape.length === 4 ? shape[0] : 1;
  const rowBytes = dim * elementBytes(format);
  const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const target = new Uint8Array(data.byteLength);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let s = 0; s < seqlen; s++) {
        const from = ((b * seqlen + s) * heads + h) * rowBytes;
        const to = ((b * heads + h) * seqlen + s) * rowBytes;
        target.set(source.subarray(from, from + rowBytes), to);
      }
  return {
    format,
    shape: [...shape.slice(0, -3), heads, seqlen, dim],
    data: elementsOver(format, target.buffer),
  };
}

/**
 * The most that the sizes other than zero of a tensor without elements may come to. Where a tensor has
 * elements, the file's length bounds its sizes; here nothing else would, and a file of some bytes could
 * ask for an output of 2^50 rows.
 */
const mostEmptySizes = 2 ** 16;

/** @throws RequestError for a tensor without elements whose other sizes exceed `mostEmptySizes` */
export function checkEmptySizes(file: TensorFile, name: string): void {
  const entry = file.entries.get(name);
  if (entry === undefined || entry.elements > 0) return;
  const rest = entry.shape.reduce((product, size) => product * (size === 0 ? 1 : size), 1);
  if (rest > mostEmptySizes)
    throw new RequestError(
      `${printable(file.path)}: tensor ${quoted(name)} of shape [${entry.shape.join(', ')}] has no ` +
        `elements, but sizes that come to more than ${mostEmptySizes}; make them smaller`,
    );
}
