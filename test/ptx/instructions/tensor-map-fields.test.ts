import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { replaceTensorMapField } from '../../../src/ptx/instructions/tensor/tensor-map-fields.js';

/** What cuTensorMapEncodeTiled was given, enumerations by their numbers in CUDA, and the bytes that it wrote. */
type CapturedMap = readonly [
  type: number,
  address: number,
  dims: readonly number[],
  strides: readonly number[],
  box: readonly number[],
  steps: readonly number[],
  interleave: number,
  swizzle: number,
  promotion: number,
  fill: number,
  bytes: string,
];

const captured = JSON.parse(
  gunzipSync(
    readFileSync(new URL('../../../fixtures/ptx/tensor-maps.json.gz', import.meta.url)),
  ).toString(),
) as readonly CapturedMap[];

/** The number that `tensormap.replace.elemtype` takes, by CUtensorMapDataType: float64, bfloat16 and float32_ftz differ. */
const elementNumber = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12];

/** Bits of byte 10 that say how L2 is to be filled: no field of tensormap.replace. */
const promotionBits = 0b110;

describe('fields of tensor maps that a kernel replaces', () => {
  it('make of zeros what the driver makes of the same arguments', () => {
    expect(captured.length).toBeGreaterThan(1000);
    for (const [
      type,
      address,
      dims,
      strides,
      box,
      steps,
      interleave,
      swizzle,
      ,
      fill,
      bytes,
    ] of captured) {
      const map = new Uint8Array(128);
      const set = (field: string, value: number, dimension = 0) =>
        expect(replaceTensorMapField(map, { field, dimension, value: BigInt(value) })).toBe(null);
      set('global_address', address);
      set('rank', dims.length - 1);
      dims.forEach((value, i) => set('global_dim', value, i));
      strides.forEach((value, i) => set('global_stride', value, i));
      box.forEach((value, i) => set('box_dim', value, i));
      steps.forEach((value, i) => set('element_stride', value, i));
      set('elemtype', elementNumber[type]);
      set('interleave_layout', interleave);
      set('swizzle_mode', swizzle);
      set('fill_mode', fill);
      const driver = Uint8Array.from(Buffer.from(bytes, 'hex'));
      driver[10] &= ~promotionBits;
      // The words from 8 on are the driver's own.
      expect([...map.subarray(0, 64)]).toEqual([...driver.subarray(0, 64)]);
    }
  });

  it('replace what was there, and nothing else', () => {
    const map = new Uint8Array(128).fill(255);
    replaceTensorMapField(map, { field: 'element_stride', dimension: 4, value: 1n });
    expect([...map].map((byte, i) => [i, byte]).filter(([, byte]) => byte !== 255)).toEqual([
      // Bits 12 to 14 of the word at byte 52.
      [53, 0x8f],
    ]);
  });

  it.each([
    ['global_dim', 5, 1n, 'names dimension 5 of global_dim; from 0 to 4 are there'],
    ['global_stride', 4, 16n, 'names dimension 4 of global_stride; from 0 to 3 are there'],
    ['global_stride', 0, 8n, 'gives a stride of 8 bytes; a multiple of 16 is due'],
    ['box_dim', 0, 0n, 'gives box_dim 0; from 1 to 256 are there'],
    ['rank', 0, 5n, 'gives rank 5; from 0 to 4 are there'],
    ['swizzle_mode', 0, 4n, 'gives swizzle_mode 4; from 0 to 3 are there'],
  ])('refuse %s of dimension %i with %s', (field, dimension, value, problem) => {
    const map = new Uint8Array(128);
    expect(replaceTensorMapField(map, { field, dimension, value })).toBe(problem);
    expect(map).toEqual(new Uint8Array(128));
  });
});
