import { describe, expect, it } from 'vitest';
import {
  blockScaledArithmetic,
  type BlockScaledArithmetic,
  createBlockScaledProduct,
  findBlockScaledArithmetic,
  type OperandFormatName,
} from '../../../src/hardware/index.js';
import { scaled } from '../../setup/effort.js';
import { exactSum, publishedSums, roundedTowardZero, type Terms } from './exact-block-scaled.js';
import { fillPatterns, type Spread, wordSource } from './random-patterns.js';

const ofSm100 = blockScaledArithmetic.filter(({ architecture }) => architecture === 'sm_100');
const ofSm120 = blockScaledArithmetic.filter(({ architecture }) => architecture === 'sm_120');

/** Random operands of a row of A and a column of B, with the factors' fields in a band about 1. */
function drawTerms(
  { k, block, scale, operands }: BlockScaledArithmetic,
  word: () => number,
  spread: Spread,
): Terms {
  const format = (): OperandFormatName => operands[word() % operands.length];
  const [aFormat, bFormat] = [format(), format()];
  const line = (of: OperandFormatName): number[] => {
    const patterns = new Array<number>(k).fill(0);
    fillPatterns(of, patterns, spread, 8, word);
    return patterns;
  };
  const factors = (): number[] =>
    Array.from({ length: k / block }, () =>
      scale === 'ue8m0' ? 120 + (word() % 14) : (word() % 0x7f) + 0x80 * (word() % 2),
    );
  const c = [0];
  fillPatterns('fp32', c, { band: 30 }, 4, word);
  return {
    aFormat,
    bFormat,
    a: line(aFormat),
    b: line(bFormat),
    aScales: factors(),
    bScales: factors(),
    c: c[0],
  };
}

function execute(arithmetic: BlockScaledArithmetic, terms: Terms): number {
  const { aFormat, bFormat, a, b, aScales, bScales, c } = terms;
  const result = Uint32Array.of(c);
  createBlockScaledProduct(
    arithmetic,
    aFormat,
    bFormat,
  )({
    m: 1,
    n: 1,
    a,
    bTransposed: b,
    aScales,
    bScales,
    c: result,
  });
  return result[0];
}

const nameOf = ({ kind, architecture, scale, block, operands }: BlockScaledArithmetic): string =>
  `${architecture}, ${kind}, ${scale} of ${block}, ${operands.length} formats`;

describe('block-scaled products', () => {
  it.each([...ofSm100, ...ofSm120].map((row) => [nameOf(row), row] as const))(
    'equal the exact sum of their truncated terms, truncated: %s',
    (_, arithmetic) => {
      const word = wordSource(arithmetic.block + arithmetic.k);
      for (let trial = 0; trial < scaled(120); trial++) {
        const terms = drawTerms(arithmetic, word, trial % 2 === 0 ? 'all' : { band: 2 });
        const { sum, truncated, unit } = exactSum(arithmetic, terms);
        expect(execute(arithmetic, terms)).toBe(roundedTowardZero(truncated));
        // And so it is near to the exact sum: each term loses less than a unit.
        const gap = truncated.value - sum.value;
        const count = arithmetic.k / publishedSums[arithmetic.kind][0] + 1;
        expect((gap < 0n ? -gap : gap) <= BigInt(count) * unit.value).toBe(true);
      }
    },
  );

  it('have the values of the formats: ones with factors 2^(i - 127) and e4m3 numbers', () => {
    const [mxfp4] = ofSm100.filter(({ kind }) => kind === 'mxf4');
    const ones = (scale: number): Terms => ({
      aFormat: 'e2m1',
      bFormat: 'e2m1',
      a: Array(64).fill(2),
      b: Array(64).fill(2),
      aScales: [scale, scale],
      bScales: [127, 127],
      c: 0,
    });
    expect(execute(mxfp4, ones(127))).toBe(0x42800000); // 64
    expect(execute(mxfp4, ones(130))).toBe(0x44000000); // 512
    expect(execute(mxfp4, ones(255))).toBe(0x7fffffff); // NaN
    const nvfp4 = ofSm100.find(({ scale }) => scale === 'ue4m3')!;
    const four = (scale: number): Terms => ({
      ...ones(0),
      aScales: Array(4).fill(scale),
      bScales: Array(4).fill(0x38),
    });
    expect(execute(nvfp4, four(0x3c))).toBe(0x42c00000); // 1.5 · 64
    expect(execute(nvfp4, four(0xbc))).toBe(0x42c00000); // the sign counts for nothing
    expect(execute(nvfp4, four(0x7f))).toBe(0x7fffffff);
  });

  it('take one factor for each block and not for its neighbour', () => {
    for (const arithmetic of ofSm100.filter(({ k, block }) => k > block)) {
      const { k, block, scale } = arithmetic;
      const [one, two] = scale === 'ue8m0' ? [127, 128] : [0x38, 0x40];
      for (let at = 0; at < k; at++) {
        const a = Array.from({ length: k }, (_, i) => (i === at ? 2 : 0));
        const b = Array<number>(k).fill(2);
        const aScales = Array.from({ length: k / block }, (_, i) =>
          i === Math.floor(at / block) ? two : one,
        );
        const bScales = Array<number>(k / block).fill(one);
        const terms: Terms = { aFormat: 'e2m1', bFormat: 'e2m1', a, b, aScales, bScales, c: 0 };
        expect(execute(arithmetic, terms)).toBe(0x40000000);
      }
    }
  });

  it('are refused where the ISA has none', () => {
    const query = { kind: 'mxf4', architecture: 'sm_100', a: 'e2m1', b: 'e2m1' } as const;
    expect(() => findBlockScaledArithmetic({ ...query, scale: 'ue4m3', block: 16 })).toThrow(
      'kind::mxf4 multiplies no e2m1 by e2m1 with ue4m3 for blocks of 16; take e2m1 with ue8m0 for 32',
    );
  });
});
