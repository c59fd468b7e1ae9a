import { writeFile } from 'node:fs/promises';
import type { CodeName } from '../../src/problem/index.js';
import { encodePlain, bitsOf } from '../audit/links/cache-write/plain-codes.js';
import {
  bufferName,
  sizesOf,
  writePlain,
  type Faults,
  type Plan,
} from '../audit/links/cache-write/plain-writer.js';

/** A tensor as a file has it. */
export interface RawTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Writes a safetensors file byte by byte. */
export async function writeRaw(
  path: string,
  tensors: Readonly<Record<string, RawTensor>>,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  let at = 0;
  const entries = Object.entries(tensors).map(([name, { dtype, shape, bytes }]) => {
    const offsets = [at, (at += bytes.length)];
    return [name, { dtype, shape, data_offsets: offsets }] as const;
  });
  const header = Buffer.from(
    JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }),
  );
  const padded = Buffer.concat([header, Buffer.alloc((8 - (header.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  await writeFile(
    path,
    Buffer.concat([length, padded, ...Object.values(tensors).map(({ bytes }) => bytes)]),
  );
}

const dtypes: Readonly<Partial<Record<CodeName, string>>> = {
  fp32: 'F32',
  bf16: 'BF16',
  fp16: 'F16',
  e4m3: 'F8_E4M3',
  e5m2: 'F8_E5M2',
  int8: 'I8',
  e8m0: 'F8_E8M0',
  e4m3fnuz: 'F8_E4M3FNUZ',
};

/** Whole numbers of 32 bits. */
export function whole(
  values: readonly number[],
  shape: readonly number[] = [values.length],
): RawTensor {
  return { dtype: 'I32', shape, bytes: new Uint8Array(Int32Array.from(values).buffer) };
}

/** Numbers in a format. */
export function numbers(
  code: CodeName,
  values: Iterable<number>,
  shape: readonly number[],
): RawTensor {
  const bytes = [...values].flatMap((x) => {
    const bits = encodePlain(code, x);
    return Array.from({ length: bitsOf[code] / 8 }, (_, i) => Math.floor(bits / 256 ** i) & 0xff);
  });
  return { dtype: dtypes[code] ?? 'U8', shape, bytes: Uint8Array.from(bytes) };
}

/** The shape of a buffer of NHD caches. */
function shapeOf(plan: Plan, part: number, isFactor: boolean): number[] {
  const { blocks, blockSize, heads, columns } = sizesOf(plan, part, isFactor);
  return [blocks, blockSize, heads, columns];
}

/** The tensors of a write as a dump has them, of NHD caches of whole bytes. */
export function dumpOf(plan: Plan, faults: Faults = {}): Record<string, RawTensor> {
  const { before, after } = writePlain(plan, faults);
  const { tokens, heads, columns, inputFormat, inputs, slots, scaling, code } = plan;
  const shape = [tokens, heads, columns];
  const tensors: Record<string, RawTensor> = {
    k: numbers(inputFormat, inputs[0], shape),
    v: numbers(inputFormat, inputs[1], shape),
    slot_mapping: whole(slots),
  };
  for (const part of [0, 1])
    for (const isFactor of scaling === null ? [false] : [false, true]) {
      const name = bufferName(plan, part, isFactor);
      const dtype = dtypes[isFactor && scaling !== null ? scaling.code : code] ?? 'U8';
      const layout = shapeOf(plan, part, isFactor);
      const [old, bytes] = [before.get(name), after.get(name)];
      if (old === undefined || bytes === undefined) continue;
      tensors[name] = { dtype, shape: layout, bytes };
      tensors[`${name}_before`] = { dtype, shape: layout, bytes: old };
    }
  return tensors;
}
