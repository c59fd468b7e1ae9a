import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  conversions,
  createConversionArray,
  type PairConversionName,
} from '../../../src/hardware/index.js';

const names = (Object.keys(conversions) as (keyof typeof conversions)[]).filter((name) =>
  name.endsWith('x2.f32'),
) as PairConversionName[];

/** Any bit pattern, and numbers on and beside the midpoints of short formats. */
const pattern = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  fc
    .tuple(fc.integer({ min: 0, max: 2 ** 22 - 1 }), fc.constantFrom(0x200, 0x1ff, 0x201, 0, 1))
    .map(([top, low]) => top * 2 ** 10 + low),
  fc
    .tuple(fc.integer({ min: 0, max: 2 ** 16 - 1 }), fc.constantFrom(0x7fff, 0x8000, 0x8001))
    .map(([top, low]) => top * 2 ** 16 + low),
);

describe.each(names)('%s in WebAssembly', (name) => {
  it('equals its definition', () => {
    const evaluate = createConversionArray(name);
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 5000, size: 'max' }), (inputs) => {
        const results = new Uint32Array(inputs.length);
        evaluate(Uint32Array.from(inputs), results);
        expect([...results]).toEqual(inputs.map(conversions[name].evaluate));
      }),
      { numRuns: 10 },
    );
  });
});
