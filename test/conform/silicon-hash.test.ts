import { describe, expect, it } from 'vitest';
import { createBlockHasher, mismatchingBlocks } from '../../src/conform/silicon-hash.js';
import { hashBlock } from './hash-block.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const constant = (bits: number) => (_: Uint32Array, results: Uint32Array) =>
  void results.fill(bits);
const scrambled = (inputs: Uint32Array, results: Uint32Array): void =>
  inputs.forEach((x, i) => (results[i] = Math.imul(x, 0x9e3779b1) >>> 7));

describe.each([
  ['as defined', hashBlock],
  ['in WebAssembly', createBlockHasher()],
])('the fingerprint %s', (_, hash) => {
  it('takes every fp32 NaN for the same result, and no other result', () => {
    // All inputs of block 0x7f9 are NaN; every capture with fp32 results has these words there.
    const nan = { sum: 1230388413, xor: 1902490445 };
    expect(hash(constant(0x7fffffff), 0x7f9)).toEqual(nan);
    expect(hash(constant(0xff800001), 0x7f9)).toEqual(nan);
    expect(hash(constant(0x7f800000), 0x7f9)).not.toEqual(nan);
    expect(hash(constant(0xff800000), 0x7f9)).not.toEqual(nan);
  });

  inTurn('tells one different result bit of a block', () => {
    const oneOff = (inputs: Uint32Array, results: Uint32Array): void => {
      scrambled(inputs, results);
      const at = inputs.indexOf(0x12356789);
      if (at >= 0) results[at] ^= 1 << 11;
    };
    expect(hash(oneOff, 0x122)).toEqual(hash(scrambled, 0x122));
    expect(hash(oneOff, 0x123)).not.toEqual(hash(scrambled, 0x123));
  });
});

describe('the hasher in WebAssembly', () => {
  inTurn.each([0, 0x3f8, 0x7ff, 0x800, 0xfff])('equals the definition on block %i', (block) => {
    const hash = createBlockHasher();
    expect(hash(scrambled, block)).toEqual(hashBlock(scrambled, block));
    expect(hash(constant(0), block)).toEqual(hashBlock(constant(0), block));
  });
});

describe('a comparison', () => {
  it('names the blocks that differ, in the order asked for', () => {
    const expected = new Uint8Array(32768);
    const view = new DataView(expected.buffer);
    const { sum, xor } = hashBlock(scrambled, 7);
    view.setUint32(7 * 8, sum, true);
    view.setUint32(7 * 8 + 4, xor, true);
    expect(mismatchingBlocks(scrambled, { expected, blocks: [8, 7, 6] })).toEqual([8, 6]);
    view.setUint32(7 * 8 + 4, xor ^ 1, true);
    expect(mismatchingBlocks(scrambled, { expected, blocks: [7] })).toEqual([7]);
  });

  it('refuses captures and blocks of the wrong size', () => {
    const expected = new Uint8Array(32760);
    expect(() => mismatchingBlocks(scrambled, { expected })).toThrow(
      /has 32760 bytes; it must have 32768/,
    );
    const whole = { expected: new Uint8Array(32768), blocks: [4096] };
    expect(() => mismatchingBlocks(scrambled, whole)).toThrow(/no block 4096/);
  });
});
