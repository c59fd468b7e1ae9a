import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type {
  ConversionName,
  PackedConversionName,
  PairConversionName,
} from '../../../src/hardware/index.js';

const folder = new URL('../../../fixtures/silicon/sm_90/', import.meta.url);

function read(file: string): Buffer {
  const bytes = readFileSync(new URL(file, folder));
  return file.endsWith('.gz') ? gunzipSync(bytes) : bytes;
}

function words(bytes: Buffer): Uint32Array {
  return Uint32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32LE(4 * i));
}

/** The conversions of two fp32 operands, in the order of packed_edges.bin. */
export const pairNames = [
  'cvt.rn.bf16x2.f32',
  'cvt.rz.bf16x2.f32',
  'cvt.rn.satfinite.bf16x2.f32',
  'cvt.rz.satfinite.bf16x2.f32',
  'cvt.rn.f16x2.f32',
  'cvt.rz.f16x2.f32',
  'cvt.rn.satfinite.f16x2.f32',
  'cvt.rz.satfinite.f16x2.f32',
  'cvt.rn.satfinite.e4m3x2.f32',
  'cvt.rn.satfinite.e5m2x2.f32',
] as const satisfies readonly PairConversionName[];

/** The conversions of a word of two fp16 numbers, in the order of packed_edges.bin. */
export const fromHalfPairNames = [
  'cvt.rn.satfinite.e4m3x2.f16x2',
  'cvt.rn.satfinite.e5m2x2.f16x2',
] as const satisfies readonly PackedConversionName[];

/** The conversions of a word of two fp8 numbers, in the order of half_tables.bin. */
export const fromFp8PairNames = [
  'cvt.rn.f16x2.e4m3x2',
  'cvt.rn.f16x2.e5m2x2',
] as const satisfies readonly PackedConversionName[];

/** The conversions of one 16-bit number, in the order of widening_tables.bin. */
export const wideningNames = [
  'cvt.f32.f16',
  'cvt.f32.bf16',
] as const satisfies readonly ConversionName[];

/** The fingerprint over all fp32 inputs: cvt.rn.bf16x2.f32 has that of `cvt_rn_bf16_f32`. */
export function fingerprint(name: PairConversionName): Uint8Array {
  return read(`hash_${name.replace('x2', '').replaceAll('.', '_')}.bin`);
}

/** Operands and result words of packed_edges.bin. */
export interface PackedEdges {
  readonly first: Uint32Array;
  readonly second: Uint32Array;
  readonly results: ReadonlyMap<ConversionName, Uint32Array>;
}

export function packedEdges(): PackedEdges {
  const all = words(read('packed_edges.bin.gz'));
  const names = [...pairNames, ...fromHalfPairNames];
  const count = all.length / (names.length + 1);
  const column = (k: number): Uint32Array => all.subarray(k * count, (k + 1) * count);
  return {
    first: column(0),
    second: column(0).toReversed(),
    results: new Map(names.map((name, k) => [name, column(k + 1)])),
  };
}

const entries = 2 ** 16;
/** The four tables of the special function unit come first. */
const fromFp8Start = 4 * 2 * entries;
const fromHalfStart = fromFp8Start + fromFp8PairNames.length * 4 * entries;

/** The 32-bit results for the byte pairs 0 to 65535. */
export function fromFp8Table(name: (typeof fromFp8PairNames)[number]): Uint32Array {
  const start = fromFp8Start + fromFp8PairNames.indexOf(name) * 4 * entries;
  return words(read('half_tables.bin.gz').subarray(start, start + 4 * entries));
}

/** The 16-bit results for the low halves 0 to 65535 under a high half of 0. */
export function fromHalfTable(name: (typeof fromHalfPairNames)[number]): Uint16Array {
  const start = fromHalfStart + fromHalfPairNames.indexOf(name) * 2 * entries;
  const bytes = read('half_tables.bin.gz');
  return Uint16Array.from({ length: entries }, (_, i) => bytes.readUInt16LE(start + 2 * i));
}

/** The fp32 results for the inputs 0 to 65535. */
export function wideningTable(name: (typeof wideningNames)[number]): Uint32Array {
  const start = wideningNames.indexOf(name) * entries;
  return words(read('widening_tables.bin.gz')).subarray(start, start + entries);
}

/** Inputs and results of the scalar form, cvt.rn.bf16.f32 for cvt.rn.bf16x2.f32. */
export function edgeCases(name: PairConversionName): [input: number, result: number][] {
  const { inputs, results } = JSON.parse(read('edge-cases.json').toString()) as {
    inputs: { f32: string[] };
    results: Record<string, string[]>;
  };
  const patterns = (rows: string[]): number[] =>
    rows.flatMap((row) => row.split(' ')).map((hex) => parseInt(hex, 16));
  const captured = patterns(results[name.replace('x2', '')]);
  return patterns(inputs.f32).map((input, i) => [input, captured[i]]);
}
