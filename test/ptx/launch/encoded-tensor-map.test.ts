import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { launchOf, kernelText, refusalOf, tensorOf } from './launches.js';
import { decodeTensorMap } from '../../../src/ptx/launch/encoded-tensor-map.js';

/** The arguments of cuTensorMapEncodeTiled, enumerations by their numbers in CUDA, and the bytes that the driver wrote. */
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

/** CUDA's names by their numbers (CUtensorMapDataType and the enumerations after it). */
const elementTypes = [
  ...['uint8', 'uint16', 'uint32', 'int32', 'uint64', 'int64', 'float16', 'float32', 'float64'],
  ...['bfloat16', 'float32_ftz', 'tfloat32', 'tfloat32_ftz'],
];
const swizzles = ['none', '32B', '64B', '128B'];
const interleaves = ['none', '16B', '32B'];
const promotions = ['none', 'L2_64B', 'L2_128B', 'L2_256B'];
const fills = ['none', 'NAN_REQUEST_ZERO_FMA'];

describe('tensor maps of the driver', () => {
  it('give back the arguments that they were made of', () => {
    expect(captured.length).toBeGreaterThan(1000);
    for (const [type, , dims, strides, box, steps, ...rest] of captured) {
      const [interleave, swizzle, promotion, fill, bytes] = rest;
      expect(decodeTensorMap(bytes)).toEqual({
        elementType: elementTypes[type],
        globalDim: dims,
        globalStrides: strides,
        boxDim: box,
        elementStrides: steps,
        interleave: interleaves[interleave],
        swizzle: swizzles[swizzle],
        l2Promotion: promotions[promotion],
        oobFill: fills[fill],
      });
    }
  });
});

describe('encoded tensor maps of a launch', () => {
  const ptx = kernelText('.param .align 64 .b8 m[128]');
  /** bf16 [32, 64] in rows of 128 bytes, boxes of 16 rows, swizzled by 128 bytes; bit 1 as CuTe DSL sets it. */
  const bytes = (() => {
    const view = new DataView(new ArrayBuffer(128));
    view.setBigUint64(0, 0x7f0000001000n, true);
    view.setUint32(8, (1 << 1) | (1 << 4) | (10 << 7) | (3 << 13), true);
    view.setUint32(12, 128 / 16, true);
    view.setUint32(32, 64 - 1, true);
    view.setUint32(36, 32 - 1, true);
    view.setUint8(55, 64 - 1);
    view.setUint8(56, 16 - 1);
    return Buffer.from(view.buffer).toString('hex');
  })();

  it('are maps of the tensor that is named', async () => {
    const map = { tensor: 'q', bytes };
    const { tensorMaps } = await launchOf({ parameters: [{ encodedTensorMap: map }] }, { ptx });
    const decoded = {
      tensor: 'q',
      byteOffset: 0,
      elementType: 'bfloat16',
      elementBytes: 2,
      globalDim: [64, 32],
      globalStrides: [128],
      boxDim: [64, 16],
      elementStrides: [1, 1],
      interleave: 'none',
      swizzle: '128B',
      oobFill: 'zero',
    };
    expect(tensorMaps).toEqual([{ offset: 0, map: decoded }]);
  });

  it.each([
    [{ bytes: 'ab' }, 'is wrong'],
    [{ bytes: 'f'.repeat(256) }, 'has bits set that no tiled map has'],
    [{ byteOffset: 16 }, 'its last element ends at byte 4112 of "q", which has 4096'],
  ])('%j are refused', async (changes, message) => {
    const encodedTensorMap = { tensor: 'q', bytes, ...changes };
    const refusal = await refusalOf(
      { parameters: [{ encodedTensorMap }] },
      { ptx, tensors: [tensorOf('q')] },
    );
    expect(refusal).toContain(`launch.json: parameters[0]`);
    expect(refusal).toContain(message);
  });
});
