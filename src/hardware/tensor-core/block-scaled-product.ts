import { formats, powerOfTwo } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { BlackwellArchitecture, TensorCoreInstruction } from '../architectures.js';
import type { TensorCoreEvidence } from './arithmetic.js';
import { exponentFloor, roundFusedSum } from './fused-dot-product.js';
import { decodeOperand, type OperandFormatName, operandFormats } from './operand.js';

/** The kinds of tcgen05.mma, and of sm_120's mma.sync, with a factor for each block of A's rows and of B's columns. */
export type BlockScaledKind = 'mxf8f6f4' | 'mxf4' | 'mxf4nvf4';

/** The formats of these factors: powers of two of 8 bits, or e4m3 whose sign bit counts for nothing. */
export type ScaleFormatName = 'ue8m0' | 'ue4m3';

/** The arithmetic of a block-scaled product with fp32 sums. */
export interface BlockScaledArithmetic {
  readonly kind: BlockScaledKind;
  readonly instruction: Extract<TensorCoreInstruction, 'mma.sync' | 'tcgen05.mma'>;
  readonly architecture: BlackwellArchitecture | 'sm_120';
  readonly operands: readonly OperandFormatName[];
  readonly scale: ScaleFormatName;
  /** Elements along K that share a factor. */
  readonly block: 16 | 32;
  /** K of one instruction. */
  readonly k: 32 | 64;
  /** Adjacent products that are summed exactly to one term of the fused sum. */
  readonly productsPerTerm: 1 | 16;
  /** F: terms are truncated to multiples of 2^(E − F). */
  readonly alignedFractionBits: 25 | 35;
  readonly evidence: TensorCoreEvidence;
}

type Row = readonly [
  kind: BlockScaledKind,
  operands: readonly OperandFormatName[],
  scale: ScaleFormatName,
  block: 16 | 32,
  evidence: TensorCoreEvidence,
];

const sums = {
  mxf8f6f4: { k: 32, productsPerTerm: 1, alignedFractionBits: 25 },
  mxf4: { k: 64, productsPerTerm: 16, alignedFractionBits: 35 },
  mxf4nvf4: { k: 64, productsPerTerm: 16, alignedFractionBits: 35 },
} as const;

const rows: readonly Row[] = [
  ['mxf8f6f4', ['e4m3', 'e5m2', 'e2m1'], 'ue8m0', 32, 'published-model'],
  ['mxf8f6f4', ['e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'], 'ue8m0', 32, 'assumed'],
  ['mxf4', ['e2m1'], 'ue8m0', 32, 'published-model'],
  ['mxf4nvf4', ['e2m1'], 'ue8m0', 32, 'published-model'],
  ['mxf4nvf4', ['e2m1'], 'ue8m0', 16, 'published-model'],
  ['mxf4nvf4', ['e2m1'], 'ue4m3', 16, 'published-model'],
];

/**
 * The block-scaled products of tcgen05.mma, and of sm_120's mma.sync. No captures are here: `published-model` is MMA-Sim's (arXiv
 * 2511.10909), which has the same sums for both, compared by its authors with a B200 and with RTX Blackwell; it has no formats of 6 bits,
 * and nothing is published about sm_103 and sm_110. Probes of an RTX 5090 (github.com/huweim/emulation_sys) speak of 25 bits for
 * mxf4nvf4 too, but add one product to C alone, which 35 bits would not change. Valid combinations: PTX ISA 9.2, "Block Scaling"
 * (sections 9.7.14.3, table 36, and 9.7.16.10.7, table 55). K = 96, which sm_103a has, is left out.
 */
export const blockScaledArithmetic: readonly BlockScaledArithmetic[] = (
  ['sm_100', 'sm_103', 'sm_110', 'sm_120'] as const
).flatMap((architecture) =>
  rows.map(([kind, operands, scale, block, evidence]) => ({
    kind,
    instruction: architecture === 'sm_120' ? 'mma.sync' : 'tcgen05.mma',
    architecture,
    operands,
    scale,
    block,
    ...sums[kind],
    evidence: architecture === 'sm_100' || architecture === 'sm_120' ? evidence : 'assumed',
  })),
);

/** Key of {@link findBlockScaledArithmetic}. */
export type BlockScaledQuery = Pick<
  BlockScaledArithmetic,
  'kind' | 'architecture' | 'scale' | 'block'
> & { readonly a: OperandFormatName; readonly b: OperandFormatName };

/** The arithmetic of such a product. Throws a RequestError that lists the modelled ones when there is none. */
export function findBlockScaledArithmetic(query: BlockScaledQuery): BlockScaledArithmetic {
  const { kind, architecture, scale, block, a, b } = query;
  const ofKind = blockScaledArithmetic.filter(
    (row) => row.kind === kind && row.architecture === architecture,
  );
  const found = ofKind.find(
    ({ operands, ...row }) =>
      row.scale === scale && row.block === block && operands.includes(a) && operands.includes(b),
  );
  if (found !== undefined) return found;
  const known = ofKind.map((row) => `${row.operands.join('/')} with ${row.scale} for ${row.block}`);
  const instruction = ofKind.at(0)?.instruction ?? 'an instruction';
  throw new RequestError(
    `${instruction} of kind::${kind} multiplies no ${a} by ${b} with ${scale} for blocks of ${block}; take ${known.join(', or ')}`,
  );
}

/** Numbers as significand · 2^exponent, by their bit patterns. */
interface Decoded {
  readonly significands: Float64Array;
  readonly exponents: Int32Array;
}

function decodeAll(format: OperandFormatName): Decoded {
  const count = 2 ** operandFormats[format].storageBits;
  const operands = Array.from({ length: count }, (_, bits) =>
    decodeOperand(operandFormats[format], bits),
  );
  return {
    significands: Float64Array.from(operands, ({ significand }) => significand),
    exponents: Int32Array.from(operands, ({ exponent }) => exponent),
  };
}

const scaleDecoders: Readonly<Record<ScaleFormatName, () => Decoded>> = {
  ue8m0: () => ({
    significands: Float64Array.from({ length: 256 }, (_, bits) => (bits === 255 ? NaN : 1)),
    exponents: Int32Array.from({ length: 256 }, (_, bits) => bits - 127),
  }),
  ue4m3: () => {
    const { significands, exponents } = decodeAll('e4m3');
    return {
      significands: significands.map((_, bits) => significands[bits & 0x7f]),
      exponents: exponents.map((_, bits) => exponents[bits & 0x7f]),
    };
  },
};

/** D = (A · scales) · (B · scales) + C of one instruction, all as bit patterns. */
export interface BlockScaledProduct {
  readonly m: number;
  readonly n: number;
  /** [m][k] and [n][k], one pattern an element. */
  readonly a: ArrayLike<number>;
  readonly bTransposed: ArrayLike<number>;
  /** [m][k / block] and [n][k / block]. */
  readonly aScales: ArrayLike<number>;
  readonly bScales: ArrayLike<number>;
  /** [m][n], fp32: C, and then D. */
  readonly c: Uint32Array;
}

/** Terms of one row of A or column of B: of each element, and of each block. */
function decodeLine(
  patterns: ArrayLike<number>,
  first: number,
  count: number,
  { significands, exponents }: Decoded,
) {
  const line = {
    s: new Float64Array(count),
    e: new Int32Array(count),
    values: new Float64Array(count),
  };
  for (let i = 0; i < count; i++) {
    line.s[i] = significands[patterns[first + i]];
    line.e[i] = exponents[patterns[first + i]];
    line.values[i] = line.s[i] * powerOfTwo(line.e[i]);
  }
  return line;
}

/**
 * Block-scaled products of operands in these formats: executes one on its `c`, in place.
 *
 * The terms of the fused sum are C and, for mxf8f6f4, each product of two elements and their factors; for mxf4 and mxf4nvf4 the
 * exact sum of 16 adjacent products, times the product of the factors' significands, with the sum of the factors' exponents as its
 * exponent (as wide as it is: it is not normalised, and its exponent counts where the sum is zero). The rest is as in
 * `fusedDotProduct`: E is the largest exponent, at least −133; each term is truncated toward zero to a multiple of 2^(E − F); their
 * exact sum is truncated to fp32. A NaN among factors, operands or C gives the NaN 0x7fffffff.
 */
export function createBlockScaledProduct(
  arithmetic: BlockScaledArithmetic,
  aFormat: OperandFormatName,
  bFormat: OperandFormatName,
): (product: BlockScaledProduct) => void {
  const ofA = decodeAll(aFormat);
  const ofB = aFormat === bFormat ? ofA : decodeAll(bFormat);
  const ofScales = scaleDecoders[arithmetic.scale]();
  const { k, block } = arithmetic;
  const linesOf =
    (ofElements: Decoded) =>
    (patterns: ArrayLike<number>, scales: ArrayLike<number>, count: number): Line[] =>
      Array.from({ length: count }, (_, i) => ({
        elements: decodeLine(patterns, i * k, k, ofElements),
        scales: decodeLine(scales, (i * k) / block, k / block, ofScales),
      }));
  const [aLines, bLines] = [linesOf(ofA), linesOf(ofB)];
  return ({ m, n, a, bTransposed, aScales, bScales, c }) =>
    multiplyLines(arithmetic, aLines(a, aScales, m), bLines(bTransposed, bScales, n), c);
}

/** A row of A or a column of B, decoded, with its factors. */
type Line = Readonly<Record<'elements' | 'scales', ReturnType<typeof decodeLine>>>;

/** Replaces C by A·B + C. */
function multiplyLines(
  { k, block, productsPerTerm, alignedFractionBits }: BlockScaledArithmetic,
  a: readonly Line[],
  b: readonly Line[],
  c: Uint32Array,
): void {
  const [m, n] = [a.length, b.length];
  const terms = k / productsPerTerm + 1;
  const [significands, exponents] = [new Float64Array(terms), new Int32Array(terms)];
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      const [row, column] = [a[i], b[j]];
      for (let term = 0; term < terms - 1; term++) {
        const first = term * productsPerTerm;
        const at = Math.floor(first / block);
        const scale = row.scales.s[at] * column.scales.s[at];
        let exponent = row.scales.e[at] + column.scales.e[at];
        let sum = 0;
        if (productsPerTerm === 1) {
          sum = row.elements.s[first] * column.elements.s[first];
          exponent += row.elements.e[first] + column.elements.e[first];
        } else
          for (let l = first; l < first + productsPerTerm; l++)
            sum += row.elements.values[l] * column.elements.values[l];
        significands[term] = sum * scale;
        // A product that is zero takes no part; a sum of products that is zero does.
        const isNothing = productsPerTerm === 1 ? sum === 0 : scale === 0;
        exponents[term] = isNothing ? nowhere : exponent;
      }
      const added = decodeOperand(accumulator, c[i * n + j]);
      significands[terms - 1] = added.significand;
      exponents[terms - 1] = added.significand === 0 ? nowhere : added.exponent;
      c[i * n + j] = fusedSum(alignedFractionBits, significands, exponents);
    }
}

const accumulator = { ...formats.fp32, name: 'fp32' } as const;

/** An exponent below all others. */
const nowhere = -10_000;

function fusedSum(fractionBits: number, significands: Float64Array, exponents: Int32Array): number {
  let [largest, total] = [exponentFloor, 0];
  for (let i = 0; i < significands.length; i++) {
    largest = Math.max(largest, exponents[i]);
    total += significands[i];
  }
  if (!Number.isFinite(total)) return roundFusedSum('fp32', 23, total);
  // Every term is below 2^47 units, so that sums of them are exact integers.
  const unitsPerOne = fractionBits - largest;
  let units = 0;
  for (let i = 0; i < significands.length; i++)
    if (exponents[i] !== nowhere)
      units += Math.trunc(significands[i] * powerOfTwo(exponents[i] + unitsPerOne));
  return roundFusedSum('fp32', 23, units * powerOfTwo(-unitsPerOne));
}
