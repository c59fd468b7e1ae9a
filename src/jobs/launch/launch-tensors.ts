import {
  allocateStorage,
  decodeTensor,
  formats,
  type FormatName,
  type Tensor,
} from '../../formats/index.js';
import { safetensorsDtypeOf, type TensorEntry, type TensorFile } from '../../io/index.js';
import type { LaunchTensor } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';

/** The bytes behind a tensor's elements. */
export function bytesOf({ data }: Tensor): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** A tensor for a kernel to write, with every byte set: elements that stay so are NaN. */
export function unwrittenTensor(format: FormatName, shape: readonly number[]): Tensor {
  const elements = shape.reduce((all, one) => all * one, 1);
  const tensor = { format, shape, data: allocateStorage(formats[format], elements) };
  bytesOf(tensor).fill(0xff);
  return tensor;
}

/** A tensor as a launch has it. */
export function launchTensor(name: string, tensor: Tensor): LaunchTensor {
  const { format, shape } = tensor;
  return {
    name,
    dtype: safetensorsDtypeOf[format],
    elementBits: formats[format].storageBits,
    shape,
    bytes: bytesOf(tensor),
  };
}

/** A launch's tensor as one of numbers. @throws RequestError for a type that is no format of numbers */
export function tensorOf({ name, dtype, shape, bytes }: Omit<LaunchTensor, 'elementBits'>): Tensor {
  const known = Object.entries(safetensorsDtypeOf).find(([, type]) => type === dtype);
  if (known === undefined)
    throw new RequestError(
      `${plainText(name)} has the type ${plainText(dtype)}; give it a format of floating-point numbers`,
    );
  const format = known[0] as FormatName;
  const data = allocateStorage(
    formats[format],
    shape.reduce((product, size) => product * size, 1),
  );
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength).set(bytes);
  return { format, shape, data };
}

/** Whether every number of a tensor is one of some kind. */
export function everyNumber(tensor: Tensor, isOne: (x: number) => boolean): boolean {
  const { length } = tensor.data;
  const step = 2 ** 16;
  for (let first = 0; first < length; first += step)
    if (!decodeTensor(tensor, first, Math.min(length, first + step)).every(isOne)) return false;
  return true;
}

/** Kinds of whole numbers as npy files spell them. */
const wholeKinds: Readonly<Record<string, string>> = { i: 'I', u: 'U' };

/** The dtype by safetensors' names, whatever file it is of: so outputs can be saved. */
function dtypeOf({ dtype, format }: TensorEntry): string {
  if (format !== null) return safetensorsDtypeOf[format];
  const [, kind, bytes] = /^[<>|=]([iub])([1248])$/.exec(dtype) ?? [];
  if (kind === undefined) return dtype;
  return kind === 'b' ? 'BOOL' : `${wholeKinds[kind]}${8 * Number(bytes)}`;
}

/** A tensor of a file as a launch has it: its bytes as they are. @throws RequestError for a tensor that cannot be read */
export async function readLaunchTensor(
  file: TensorFile,
  entry: TensorEntry,
): Promise<LaunchTensor> {
  const { name, shape, elements } = entry;
  const bytes = await file.readBytes(name);
  const elementBits = elements === 0 ? 8 : (8 * bytes.byteLength) / elements;
  return { name, dtype: dtypeOf(entry), elementBits, shape, bytes };
}
