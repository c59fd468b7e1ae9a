import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createSpecialFunctionArrays,
  specialFunctions,
  type Float32SpecialFunctionName,
} from '../../../src/hardware/index.js';

const arrays = createSpecialFunctionArrays();
const names = Object.keys(arrays) as Float32SpecialFunctionName[];

/** Any bit pattern, those where the functions do something, and the ends of every range. */
const pattern = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  fc
    .tuple(fc.integer({ min: 0x33000000, max: 0x43100000 }), fc.boolean())
    .map(([magnitude, negative]) => magnitude + (negative ? 2 ** 31 : 0)),
  fc
    .tuple(fc.integer({ min: 0, max: 511 }), fc.constantFrom(0, 1, 2, 0x7ffffe, 0x7fffff))
    .map(([top, fraction]) => top * 2 ** 23 + fraction),
);

describe.each(names)('%s in WebAssembly', (name) => {
  it('equals its definition', () => {
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 5000, size: 'max' }), (inputs) => {
        const results = new Uint32Array(inputs.length);
        arrays[name](Uint32Array.from(inputs), results);
        expect([...results]).toEqual(inputs.map(specialFunctions[name].evaluate));
      }),
      { numRuns: 20 },
    );
  });

  it('writes nothing beyond its results', () => {
    const results = new Uint32Array(9).fill(0xdeadbeef);
    arrays[name](new Uint32Array(7), results);
    expect([...results.subarray(7)]).toEqual([0xdeadbeef, 0xdeadbeef]);
  });
});
