import { describe, expect, it } from 'vitest';
import {
  architectureEvidence,
  architectureNames,
  createTensorCoreTile,
  findTensorCoreArithmetic,
  fusedDotProduct,
  instructionChain,
  instructionLengths,
  operandFormats,
  tensorCoreArithmetic,
  tensorCoreEvidence,
  tensorCoreProduct,
} from '../../../src/hardware/index.js';
import { RequestError } from '../../../src/request-error.js';
import { edgeInstructions } from './captures.js';

describe('the table of arithmetics', () => {
  it('finds every row by what it says, and labels what it rests on', () => {
    for (const row of tensorCoreArithmetic) {
      const { instruction, architecture, operands, accumulator } = row;
      const [a, b] = row.mixed ? operands : [operands[0], operands[0]];
      const found = findTensorCoreArithmetic({ instruction, architecture, a, b, accumulator });
      expect(found).toEqual(row);
      expect(tensorCoreEvidence(row)).toMatch(row.evidence === 'silicon' ? /^sm_90 / : /^\[/);
    }
  });

  it('says silicon of Hopper only, and of all that was captured', () => {
    const silicon = tensorCoreArithmetic.filter(({ evidence }) => evidence === 'silicon');
    expect(new Set(silicon.map(({ architecture }) => architecture))).toEqual(new Set(['sm_90']));
    for (const row of silicon)
      for (const a of row.operands)
        for (const b of row.mixed ? row.operands : [a]) {
          const captured = edgeInstructions.some(
            (instruction) =>
              instruction.a === a &&
              instruction.b === b &&
              instruction.accumulator === row.accumulator &&
              instruction.name.startsWith(row.instruction.slice(0, 3)),
          );
          expect(captured, `${row.instruction} of ${a} and ${b}`).toBe(true);
        }
  });

  it('gives GeForce Blackwell whole sums of bytes and all fraction bits, unlike Ada', () => {
    const sums = (architecture: 'sm_89' | 'sm_120', a: 'e4m3' | 'e2m1' = 'e4m3') => {
      const row = findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a });
      return [row.productsPerSum, row.alignedFractionBits, row.resultFractionBits];
    };
    expect(sums('sm_120')).toEqual([32, 25, 23]);
    expect(sums('sm_120', 'e2m1')).toEqual([32, 25, 23]);
    expect(sums('sm_89')).toEqual([16, 13, 13]);
  });

  it('says what an architecture rests on', () => {
    expect(architectureEvidence('sm_90')).toBe(
      'matrix products sm_90 silicon, every captured result; special functions: sm_90 silicon, every input',
    );
    for (const name of architectureNames.filter((one) => one !== 'sm_90'))
      expect(architectureEvidence(name)).toMatch(
        /^matrix products \[.*; special functions: MUFU table from sm_90 silicon$/,
      );
    expect(architectureEvidence('sm_120')).toContain('MMA-Sim');
    expect(architectureEvidence('sm_110')).toContain('products [assumed] as on sm_100;');
  });

  it('claims no published model of what nobody has published', () => {
    for (const row of tensorCoreArithmetic) {
      const { architecture, operands, instruction } = row;
      if (architecture === 'sm_103' || architecture === 'sm_110')
        expect(row.evidence).toBe('assumed');
      if (instruction === 'mma.sync' && operands.includes('e2m3'))
        expect(row.evidence).toBe('assumed');
    }
  });

  it('keeps sums of terms below 2^31 in two parts, as the tiles need', () => {
    for (const row of tensorCoreArithmetic) {
      const largest = Math.max(
        ...row.operands.map((name) => 2 - 2 ** (1 - operandFormats[name].precision)),
      );
      const products = Math.max(4, row.productsPerSum / 2) * largest ** 2;
      expect((products + 2) * 2 ** row.alignedFractionBits).toBeLessThan(2 ** 31);
      expect(row.alignedFractionBits).toBeLessThanOrEqual(25);
    }
  });

  it.each([
    { instruction: 'wgmma', architecture: 'sm_100', a: 'bf16' },
    { instruction: 'wgmma', architecture: 'sm_90', a: 'e2m1' },
    { instruction: 'wgmma', architecture: 'sm_90', a: 'bf16', b: 'fp16' },
    { instruction: 'mma.sync', architecture: 'sm_80', a: 'bf16', accumulator: 'fp16' },
  ] as const)('refuses %j and says what there is', (query) => {
    expect(() => findTensorCoreArithmetic(query)).toThrow(RequestError);
    expect(() => findTensorCoreArithmetic(query)).toThrow(/is not modelled; take one of: \w/);
  });
});

describe('lengths of instructions', () => {
  it.each([
    ['mma.sync', 'bf16', [8, 16]],
    ['mma.sync', 'tf32', [4, 8]],
    ['mma.sync', 'e4m3', [16, 32]],
    ['mma.sync', 'e2m1', [32]],
    ['wgmma', 'e2m1', []],
    ['wgmma', 'fp16', [16]],
    ['wgmma', 'e5m2', [32]],
    ['tcgen05.mma', 'bf16', [16]],
    ['tcgen05.mma', 'e2m1', [32]],
    ['tcgen05.mma', 'tf32', [8]],
  ] as const)('%s of %s has the lengths %j', (instruction, operand, lengths) => {
    expect(instructionLengths(instruction, operand)).toEqual(lengths);
  });

  it('has a length for every arithmetic', () => {
    for (const { instruction, operands, productsPerSum } of tensorCoreArithmetic)
      for (const operand of operands) {
        const lengths = instructionLengths(instruction, operand);
        expect(Math.max(...lengths) % productsPerSum).toBe(0);
      }
  });
});

describe('chains', () => {
  const ampere = findTensorCoreArithmetic({
    instruction: 'mma.sync',
    architecture: 'sm_80',
    a: 'bf16',
  });
  const hopper = findTensorCoreArithmetic({
    instruction: 'mma.sync',
    architecture: 'sm_90',
    a: 'bf16',
  });

  it('count instructions and the sums in them', () => {
    const chains = [
      [ampere, 128, undefined, { length: 16, instructions: 8, sums: 16, productsPerSum: 8 }],
      [hopper, 128, undefined, { length: 16, instructions: 8, sums: 8, productsPerSum: 16 }],
      [hopper, 128, 8, { length: 8, instructions: 16, sums: 16, productsPerSum: 8 }],
      [hopper, 0, undefined, { length: 16, instructions: 0, sums: 0, productsPerSum: 16 }],
    ] as const;
    for (const [arithmetic, inner, k, chain] of chains)
      expect(instructionChain(arithmetic, inner, k)).toEqual(chain);
  });

  it('depend on how many products a sum takes', () => {
    // 2^24 + 1 + 1: two sums lose a 1 each, to truncation, which one sum keeps.
    const patterns: Readonly<Record<number, number>> = { 0: 0x4b80, 1: 0x3f80, 8: 0x3f80 };
    const a = Array.from({ length: 16 }, (_, i) => patterns[i] ?? 0);
    const bTransposed = a.map(() => 0x3f80);
    const shape = { m: 1, n: 1, k: 16, aFormat: 'bf16', bFormat: 'bf16' } as const;
    const product = { ...shape, a, bTransposed, c: [0] };
    const halves = { ...product, instructionLength: 8 };
    expect(tensorCoreProduct(hopper, product)[0]).toBe(0x4b800001);
    expect(tensorCoreProduct(hopper, halves)[0]).toBe(0x4b800000);
    expect(tensorCoreProduct(ampere, product)[0]).toBe(0x4b800000);
  });

  it.each([
    [24, undefined, /fill up with zeros to a multiple of 16/],
    [-16, undefined, /no whole number/],
    [16, 4, /has no K of 4; take 8 or 16/],
  ] as const)('refuse %d products by instructions of length %s', (inner, k, message) => {
    expect(() => instructionChain(hopper, inner, k)).toThrow(RequestError);
    expect(() => instructionChain(hopper, inner, k)).toThrow(message);
  });

  it('refuse operands of other formats than the arithmetic is for', () => {
    const row = Array.from({ length: 16 }, () => 0);
    const product = { m: 1, n: 1, k: 16, a: row, bTransposed: row, c: [0] };
    const tile = { rows: 1, columns: 8, inner: 16 };
    for (const [aFormat, bFormat] of [
      ['bf16', 'fp16'],
      ['e4m3', 'e4m3'],
    ] as const) {
      const message = /does not multiply .* pass operands in fp16 or bf16 and equal ones/;
      const formats = { aFormat, bFormat };
      expect(() => tensorCoreProduct(hopper, { ...product, ...formats })).toThrow(message);
      expect(() => createTensorCoreTile(hopper, { ...tile, ...formats })).toThrow(message);
    }
  });

  it('refuse operands that do not pair up', () => {
    const one = { significand: 1, exponent: 0 };
    expect(() => fusedDotProduct(hopper, [one], [one, one], 0)).toThrow(RequestError);
    expect(() => fusedDotProduct(hopper, [one], [one], 2 ** 32)).toThrow(RequestError);
  });

  it('refuse matrices of the wrong size', () => {
    const shape = { m: 1, n: 1, k: 16, aFormat: 'bf16', bFormat: 'bf16' } as const;
    const row = Array.from({ length: 16 }, () => 0);
    const product = { ...shape, a: row, bTransposed: row, c: [0] };
    expect([...tensorCoreProduct(hopper, product)]).toEqual([0]);
    for (const wrong of [{ a: [0] }, { bTransposed: [0] }, { c: [0, 0] }])
      expect(() => tensorCoreProduct(hopper, { ...product, ...wrong })).toThrow(RequestError);
  });
});
