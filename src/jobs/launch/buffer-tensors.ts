import { type FormatName, formats } from '../../formats/index.js';
import {
  type BufferFile,
  evaluate,
  type LaunchTensor,
  type Variables,
} from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { bytesOf, launchTensor, unwrittenTensor } from './launch-tensors.js';

/** The most bytes of a buffer: the memory of a GPU. */
const mostBufferBytes = 2 ** 38;

/**
 * The buffers of a launch file before its first launch: zeros, or NaN in every element.
 *
 * @param path of the launch file, for messages
 * @param variables numbers of the problem, for expressions; none where there is no problem
 * @throws RequestError for a format that is none, and for a shape that is none
 */
export function bufferTensors(
  { buffers }: { readonly buffers: readonly BufferFile[] },
  path: string,
  variables: Variables,
): readonly LaunchTensor[] {
  return buffers.map(({ name, format, shape, zeros }) => {
    const wrong = (what: string) =>
      new RequestError(`${path}: buffer "${plainText(name)}" ${what}`);
    if (!Object.hasOwn(formats, format))
      throw wrong(
        `has the format "${plainText(format)}"; give one of ${Object.keys(formats).join(', ')}`,
      );
    const dims = shape.map((one) => (typeof one === 'number' ? one : evaluate(one, variables)));
    const bits = formats[format as FormatName].storageBits;
    const bytes = dims.reduce((all, one) => all * one, bits / 8);
    if (!dims.every((one) => Number.isInteger(one) && one >= 0) || bytes > mostBufferBytes)
      throw wrong(`has the shape [${dims.join(', ')}]; give whole numbers, at most 2^38 bytes`);
    const tensor = unwrittenTensor(format as FormatName, dims);
    if (zeros) bytesOf(tensor).fill(0);
    return launchTensor(name, tensor);
  });
}
