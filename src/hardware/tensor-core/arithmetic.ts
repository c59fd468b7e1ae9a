import { RequestError } from '../../request-error.js';
import type { TensorCoreArchitecture, TensorCoreInstruction } from '../architectures.js';
import type { OperandFormatName } from './operand.js';

/** The format of C and D. */
export type AccumulatorFormat = 'fp32' | 'fp16';

/**
 * Evidence for a row of the table. `silicon`: captured on that architecture for these operands.
 * `published-words`: result words that others published for that architecture. `published-model`:
 * the published model MMA-Sim, which its authors compared with hardware. `assembled`: the same model of the
 * instructions that ptxas emits in place of one. `assumed`: none; the arithmetic of a sibling.
 */
export type TensorCoreEvidence =
  'silicon' | 'published-words' | 'published-model' | 'assembled' | 'assumed';

/** The arithmetic of an instruction on an architecture, as far as operand formats decide it. */
export interface TensorCoreArithmetic {
  readonly instruction: TensorCoreInstruction;
  readonly architecture: TensorCoreArchitecture;
  /** The formats that A and B may have. */
  readonly operands: readonly OperandFormatName[];
  /** Whether A and B may have different ones of these formats. */
  readonly mixed: boolean;
  readonly accumulator: AccumulatorFormat;
  /** The most products that one fused sum takes; an instruction with a longer K makes several. */
  readonly productsPerSum: number;
  /** F: terms are truncated to multiples of 2^(E − F), with E the largest exponent of the sum. */
  readonly alignedFractionBits: number;
  /** Fraction bits that a result keeps; the lower ones of its format are zero. */
  readonly resultFractionBits: number;
  /**
   * The way an instruction sums its products. `chain`: fused sums in ascending k. `via-fp16`: the
   * sequence that ptxas emits in place of an instruction that the architecture lacks
   * (instructions.ts).
   */
  readonly sequence: 'chain' | 'via-fp16';
  readonly evidence: TensorCoreEvidence;
}

/** Accumulators by the names that the rows below use. */
const accumulators = {
  fp32: { accumulator: 'fp32', resultFractionBits: 23 },
  /** fp32 with only 13 fraction bits kept. */
  fp32Short: { accumulator: 'fp32', resultFractionBits: 13 },
  fp16: { accumulator: 'fp16', resultFractionBits: 10 },
} as const;

/** One row: operand formats, accumulator, products per sum, F, evidence, and unusual members. */
type Row = readonly [
  operands: readonly OperandFormatName[],
  accumulator: keyof typeof accumulators,
  productsPerSum: number,
  alignedFractionBits: number,
  evidence: TensorCoreEvidence,
  unusual?: Partial<Pick<TensorCoreArithmetic, 'mixed' | 'sequence'>>,
];

function rows(
  instruction: TensorCoreInstruction,
  architecture: TensorCoreArchitecture,
  list: readonly Row[],
): TensorCoreArithmetic[] {
  return list.map(
    ([operands, accumulator, productsPerSum, alignedFractionBits, evidence, unusual]) => ({
      instruction,
      architecture,
      operands,
      productsPerSum,
      alignedFractionBits,
      evidence,
      ...accumulators[accumulator],
      mixed: false,
      sequence: 'chain',
      ...unusual,
    }),
  );
}

const fp8: readonly OperandFormatName[] = ['e4m3', 'e5m2'];
const fp8AndBelow: readonly OperandFormatName[] = [...fp8, 'e2m3', 'e3m2', 'e2m1'];
const mixed = { mixed: true } as const;
const mixedViaFp16 = { mixed: true, sequence: 'via-fp16' } as const;

const ampere: readonly Row[] = [
  [['fp16', 'bf16'], 'fp32', 8, 24, 'published-model'],
  [['fp16'], 'fp16', 8, 24, 'published-model'],
  [['tf32'], 'fp32', 4, 24, 'published-model'],
];

const hopper: readonly Row[] = [
  [['fp16', 'bf16'], 'fp32', 16, 25, 'silicon'],
  [['fp16'], 'fp16', 16, 25, 'silicon'],
  [['tf32'], 'fp32', 8, 25, 'silicon'],
];

/** Blackwell's mma.sync of the operands that Ampere has too; the numbers are Hopper's. */
const blackwellHalves: readonly Row[] = [
  [['fp16', 'bf16'], 'fp32', 16, 25, 'published-model'],
  [['fp16'], 'fp16', 16, 25, 'published-model'],
  [['tf32'], 'fp32', 8, 25, 'published-model'],
];
const blackwellSync = rows('mma.sync', 'sm_100', [
  ...blackwellHalves,
  [fp8, 'fp32', 16, 25, 'assembled', mixedViaFp16],
  [fp8, 'fp16', 16, 25, 'assembled', mixedViaFp16],
]);

/** The formats that MMA-Sim has of sm_120's products of up to 8 bits, and all of them: those of 6 bits it leaves to do. */
const modelledBytes: readonly OperandFormatName[] = [...fp8, 'e2m1'];
const alsoSixBits: readonly OperandFormatName[] = ['e3m2', 'e2m3', ...modelledBytes];
const geForceSync = rows('mma.sync', 'sm_120', [
  ...blackwellHalves,
  [modelledBytes, 'fp32', 32, 25, 'published-model', mixed],
  [modelledBytes, 'fp16', 32, 25, 'published-model', mixed],
  [alsoSixBits, 'fp32', 32, 25, 'assumed', mixed],
  [alsoSixBits, 'fp16', 32, 25, 'assumed', mixed],
]);

const blackwell = rows('tcgen05.mma', 'sm_100', [
  [['fp16', 'bf16'], 'fp32', 16, 25, 'published-words'],
  [['fp16', 'bf16'], 'fp32', 16, 25, 'published-model', mixed],
  [['fp16'], 'fp16', 16, 25, 'published-model'],
  [['tf32'], 'fp32', 8, 25, 'published-words'],
  [fp8AndBelow, 'fp32', 32, 25, 'published-words'],
  [fp8AndBelow, 'fp32', 32, 25, 'published-model', mixed],
  [fp8AndBelow, 'fp16', 32, 25, 'published-model', mixed],
]);

/**
 * The arithmetic of NVIDIA's tensor cores, one row for each instruction, architecture, operand format
 * and accumulator; {@link findTensorCoreArithmetic} takes the first row that fits.
 *
 * `silicon` rows equal an H200 on everything in fixtures/silicon/sm_90/mma, `published-words` rows
 * the B200 results in fixtures/silicon/sm_100. All others are those of MMA-Sim (Xie et al., "MMA-Sim:
 * Bit-Accurate Reference Model of Tensor Cores and Matrix Cores", arXiv 2511.10909), except sm_103's and sm_110's,
 * which nobody has published, and sm_120's operands of 6 bits. Probes of an RTX 5090 that others published agree with sm_120's fp16 into
 * fp32: 25 bits, truncated (github.com/huweim/emulation_sys). Two facts surprise: Ampere and Ada cut K into halves that are summed
 * one after the other, and the fp8 sums of Ada and of Hopper's wgmma keep 13 fraction bits, of terms
 * and of results; sm_120's do not. Block-scaled and sparse forms are left out.
 */
export const tensorCoreArithmetic: readonly TensorCoreArithmetic[] = [
  ...rows('mma.sync', 'sm_80', ampere),
  ...rows('mma.sync', 'sm_89', [
    ...ampere,
    [fp8, 'fp32Short', 16, 13, 'published-model', mixed],
    [fp8, 'fp16', 16, 13, 'published-model', mixed],
  ]),
  ...rows('mma.sync', 'sm_90', [
    ...hopper,
    [fp8, 'fp32', 16, 25, 'silicon', mixedViaFp16],
    [fp8, 'fp16', 16, 25, 'silicon', mixedViaFp16],
  ]),
  ...rows('wgmma', 'sm_90', [
    ...hopper,
    [fp8, 'fp32Short', 32, 13, 'silicon', mixed],
    [fp8, 'fp16', 32, 13, 'silicon', mixed],
  ]),
  ...blackwellSync,
  ...blackwell,
  ...(['sm_103', 'sm_110'] as const).flatMap((architecture) =>
    [...blackwellSync, ...blackwell].map(
      (row) => ({ ...row, architecture, evidence: 'assumed' }) as const,
    ),
  ),
  ...geForceSync,
];

/** Key of {@link findTensorCoreArithmetic}. */
export interface ArithmeticQuery {
  readonly instruction: TensorCoreInstruction;
  readonly architecture: TensorCoreArchitecture;
  readonly a: OperandFormatName;
  /** Default: as `a`. */
  readonly b?: OperandFormatName;
  /** Default: fp32. */
  readonly accumulator?: AccumulatorFormat;
}

/**
 * The arithmetic of an instruction on an architecture for these operand formats. Throws a
 * RequestError that lists the modelled rows when none fits.
 */
export function findTensorCoreArithmetic(query: ArithmeticQuery): TensorCoreArithmetic {
  const { instruction, architecture, a, b = a, accumulator = 'fp32' } = query;
  const candidates = tensorCoreArithmetic.filter(
    (row) => row.instruction === instruction && row.architecture === architecture,
  );
  const found = candidates.find((row) => row.accumulator === accumulator && multiplies(row, a, b));
  if (found !== undefined) return found;
  const known =
    candidates.length > 0
      ? candidates.map(operandsAndAccumulator)
      : tensorCoreArithmetic.map(instructionOn);
  throw new RequestError(
    `${instruction} of ${a} and ${b} into ${accumulator} on ${architecture} is not modelled; take one of: ${[...new Set(known)].join('; ')}`,
  );
}

/** Throws a RequestError unless a row of the table is for operands of these formats. */
export function checkOperandFormats(
  row: TensorCoreArithmetic,
  a: OperandFormatName,
  b: OperandFormatName,
): void {
  if (multiplies(row, a, b)) return;
  const different = row.mixed ? '' : ' and equal ones';
  throw new RequestError(
    `this ${row.instruction} on ${row.architecture} does not multiply ${a} by ${b}; pass operands in ${row.operands.join(' or ')}${different}, or find the arithmetic of ${a} and ${b}`,
  );
}

function multiplies(
  { operands, mixed }: TensorCoreArithmetic,
  a: OperandFormatName,
  b: OperandFormatName,
): boolean {
  return operands.includes(a) && (a === b || (mixed && operands.includes(b)));
}

function operandsAndAccumulator({ operands, accumulator }: TensorCoreArithmetic): string {
  return `${operands.join('/')} into ${accumulator}`;
}

function instructionOn({ instruction, architecture }: TensorCoreArithmetic): string {
  return `${instruction} on ${architecture}`;
}

const labels: Readonly<Record<TensorCoreEvidence, (row: TensorCoreArithmetic) => string>> = {
  silicon: ({ architecture }) => `${architecture} silicon, every captured result`,
  'published-words': ({ architecture }) => `[model] with ${architecture} result words published`,
  'published-model': () => '[model] MMA-Sim, arXiv 2511.10909',
  assembled: () => '[model] MMA-Sim, of what ptxas 13.4 emits',
  assumed: ({ architecture }) =>
    architecture === 'sm_120' ? '[assumed] as its other formats' : '[assumed] as on sm_100',
};

/** The evidence for the arithmetic of a row, one line for reports. */
export function tensorCoreEvidence(row: TensorCoreArithmetic): string {
  return labels[row.evidence](row);
}
