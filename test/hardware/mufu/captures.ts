import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { SpecialFunctionName } from '../../../src/hardware/index.js';

const folder = new URL('../../../fixtures/silicon/sm_90/', import.meta.url);

/** The captured fp32 instructions in the order of edges.bin. */
export const fp32Names = [
  'ex2.approx.ftz.f32',
  'ex2.approx.f32',
  'rcp.approx.ftz.f32',
  'lg2.approx.ftz.f32',
  'rsqrt.approx.ftz.f32',
  'tanh.approx.f32',
] as const satisfies readonly SpecialFunctionName[];

/** Those of which fingerprints were captured, and no edges. */
export const furtherNames = [
  'rcp.approx.f32',
  'lg2.approx.f32',
  'rsqrt.approx.f32',
  'sqrt.approx.ftz.f32',
  'sqrt.approx.f32',
  'sin.approx.ftz.f32',
  'sin.approx.f32',
  'cos.approx.ftz.f32',
  'cos.approx.f32',
] as const satisfies readonly SpecialFunctionName[];

/** The captured 16-bit instructions in the order of half_tables.bin, where they come first. */
export const halfNames = [
  'ex2.approx.ftz.bf16',
  'ex2.approx.f16',
  'tanh.approx.bf16',
  'tanh.approx.f16',
] as const satisfies readonly SpecialFunctionName[];

/** Input and captured result, as bit patterns. */
export type Pair = readonly [input: number, result: number];

function fileOf(prefix: string, name: SpecialFunctionName): URL {
  return new URL(`${prefix}_${name.replaceAll('.', '_')}.bin`, folder);
}

function words(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(4 * i, true));
}

export function fingerprint(name: SpecialFunctionName): Uint8Array {
  return readFileSync(fileOf('hash', name));
}

export function pairs(name: SpecialFunctionName): Pair[] {
  const all = words(readFileSync(fileOf('pairs', name)));
  return Array.from({ length: all.length / 2 }, (_, i) => [all[2 * i], all[2 * i + 1]] as const);
}

/** Every exponent of both signs. */
export function edges(name: (typeof fp32Names)[number]): Pair[] {
  const all = words(readFileSync(new URL('edges.bin', folder)));
  const count = all.length / (fp32Names.length + 1);
  const column = (fp32Names.indexOf(name) + 1) * count;
  return Array.from({ length: count }, (_, i) => [all[i], all[column + i]] as const);
}

/** The results for the inputs 0 to 65535. */
export function halfTable(name: (typeof halfNames)[number]): Uint16Array {
  const bytes = gunzipSync(readFileSync(new URL('half_tables.bin.gz', folder)));
  const start = halfNames.indexOf(name) * 65536;
  return Uint16Array.from({ length: 65536 }, (_, i) => bytes.readUInt16LE(2 * (start + i)));
}
