import { describe, expect, test } from 'vitest';
import { createSpecialFunctionArrays, specialFunctions } from '../../../src/hardware/index.js';
import { blocksUnlikeSilicon, definitionUnlikeSilicon, hex } from '../silicon-blocks.js';
import {
  edges,
  fingerprint,
  fp32Names,
  furtherNames,
  halfNames,
  halfTable,
  pairs,
} from './captures.js';
import type { Pair } from './captures.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What the model gives otherwise than silicon, worded for the failure. */
function differences(evaluate: (bits: number) => number, captured: readonly Pair[]): string[] {
  return captured
    .filter(([input, result]) => evaluate(input) !== result)
    .map(([input, result]) => `${hex(input)}: ${hex(evaluate(input))}, silicon has ${hex(result)}`);
}

/** `count` evenly spaced ones of the eight blocks of 2^20 inputs from 2^exponent. */
function binade(exponent: number, count = 8): number[] {
  return Array.from({ length: count }, (_, i) => (exponent + 127) * 8 + (i * 8) / count);
}

/**
 * The blocks compared, by the leading 12 bits of their inputs: every segment of the tables (of tanh
 * beyond 4, where it is all but flat, every other one), and where each function changes its ways
 * outside them: the smallest numbers, infinity and NaN, and the ends of its range.
 */
const blocks: Record<
  (typeof fp32Names)[number] | (typeof furtherNames)[number],
  readonly number[]
> = {
  'ex2.approx.ftz.f32': [...binade(0), 0x000, 0x337, 0x42f, 0x7f8, 0xb3f, 0xbf9, 0xc2f, 0xff8],
  'ex2.approx.f32': [0x3fc, 0x7f8, 0xbf9, 0xc2f, 0xc30, 0xc31, 0xff8],
  'rcp.approx.ftz.f32': [...binade(0), 0x007, 0x7e7, 0x7e8, 0x7f8, 0xfe8],
  'lg2.approx.ftz.f32': [...binade(0), 0x007, 0x008, 0x3e8, 0x3f3, 0x7f8, 0x800],
  'rsqrt.approx.ftz.f32': [...binade(0), ...binade(1), 0x007, 0x7f7, 0x7f8, 0x800],
  'tanh.approx.f32': [
    ...[binade(-8, 1), binade(-7, 1), binade(-6, 1), binade(-5, 2), binade(-4, 2)].flat(),
    ...[binade(-3, 4), binade(-2, 4), binade(-1, 4), binade(0), binade(1), binade(2, 4)].flat(),
    ...[0x000, 0x3b7, 0x410, 0x7f8, 0xbf3],
  ],
  'rcp.approx.f32': [...binade(0, 2), 0x000, 0x001, 0x007, 0x7e8, 0x7f0, 0x7f7, 0x7f8, 0x803],
  'lg2.approx.f32': [...binade(0, 2), 0x000, 0x001, 0x007, 0x008, 0x7f8, 0x800],
  'rsqrt.approx.f32': [...binade(0, 2), 0x000, 0x001, 0x007, 0x7f8, 0x800],
  'sqrt.approx.ftz.f32': [...binade(0), ...binade(1), 0x007, 0x008, 0x7f7, 0x7f8, 0x800, 0xbf8],
  'sqrt.approx.f32': [...binade(0, 2), 0x000, 0x001, 0x007, 0x7f8, 0x800],
  'sin.approx.ftz.f32': [...binade(0), 0x000, 0x340, 0x3b0, 0x3d0, 0x410, 0x4b0, 0x7f8, 0xbf9],
  'sin.approx.f32': [...binade(1, 2), 0x000, 0x007, 0x350, 0x800, 0xbfc],
  'cos.approx.ftz.f32': [...binade(0), 0x000, 0x3d0, 0x410, 0x4b0, 0x7f8, 0xbf9],
  'cos.approx.f32': [...binade(1, 2), 0x000, 0x800, 0xbfc],
};

const arrays = createSpecialFunctionArrays();

describe.each([...fp32Names, ...furtherNames])('%s', (name) => {
  const { evaluate } = specialFunctions[name];
  const comparison = {
    definition: (inputs: Uint32Array, results: Uint32Array) => {
      for (let i = 0; i < inputs.length; i++) results[i] = evaluate(inputs[i]);
    },
    webAssembly: arrays[name],
    expected: fingerprint(name),
    blocks: blocks[name],
  };

  const withEdges = fp32Names.find((other) => other === name);
  if (withEdges !== undefined)
    test('equals silicon at every exponent of both signs', () => {
      expect(differences(evaluate, edges(withEdges))).toEqual([]);
    });

  inTurn('equals silicon in WebAssembly, on whole blocks of inputs', () => {
    expect(blocksUnlikeSilicon(comparison)).toEqual([]);
  });

  inTurn('equals silicon on two drawn blocks, its WebAssembly at inputs of every block', () => {
    expect(definitionUnlikeSilicon(comparison, 2)).toEqual([]);
  });
});

describe.each([
  'ex2.approx.ftz.f32',
  'ex2.approx.f32',
  'rcp.approx.ftz.f32',
  'lg2.approx.ftz.f32',
] as const)('%s', (name) => {
  test('equals silicon on special values and random numbers', () => {
    const captured = pairs(name);
    expect(captured.length).toBeGreaterThanOrEqual(26);
    expect(differences(specialFunctions[name].evaluate, captured)).toEqual([]);
  });
});

describe.each(halfNames)('%s', (name) => {
  test('equals silicon on all 65,536 inputs', () => {
    const captured = Array.from(halfTable(name), (result, input): Pair => [input, result]);
    expect(differences(specialFunctions[name].evaluate, captured)).toEqual([]);
  });
});
