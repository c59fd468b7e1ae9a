import type { PatternArray } from '../../../src/formats/index.js';
import {
  findTensorCoreArithmetic,
  type OperandFormatName,
  operandFormats,
  type TensorCoreArithmetic,
  tensorCoreProduct,
} from '../../../src/hardware/index.js';
import {
  createSharedMemory,
  createTensorMemory,
  type Major,
  type SwizzleMode,
  tensorAddress,
} from '../../../src/machine/memory/index.js';
import {
  createMmaUnit,
  type MmaCta,
  type MmaInstruction,
  type MmaUnit,
} from '../../../src/machine/isa/tensor-core/index.js';
import {
  fillPatterns,
  type Spread,
  wordSource,
} from '../../hardware/tensor-core/random-patterns.js';
import { denseDescriptor, placeMatrix } from '../memory/canonical-layout.js';

function createCta(): MmaCta {
  return { shared: createSharedMemory(), tensor: createTensorMemory() };
}

/** The arithmetic of tcgen05.mma of these formats into fp32. */
export function arithmeticOf(a: OperandFormatName, b = a): TensorCoreArithmetic {
  return findTensorCoreArithmetic({ instruction: 'tcgen05.mma', architecture: 'sm_100', a, b });
}

const units = new Map<TensorCoreArithmetic, MmaUnit>();

/** One unit for each arithmetic, so that its tiles serve several trials. */
export function unitOf(arithmetic: TensorCoreArithmetic): MmaUnit {
  const unit = units.get(arithmetic) ?? createMmaUnit(arithmetic);
  units.set(arithmetic, unit);
  return unit;
}

/** Whether elements of a format take one byte. */
export const isByte = (format: OperandFormatName): boolean =>
  operandFormats[format].storageBits === 8;

const bytesOf = (format: OperandFormatName): number => operandFormats[format].storageBits / 8;

function randomMatrix(
  format: OperandFormatName,
  length: number,
  spread: Spread,
  word: () => number,
): Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
  const Patterns = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array }[8 * bytesOf(format)]!;
  const patterns = new Patterns(length);
  fillPatterns(format, patterns, spread, 20, word);
  return patterns;
}

/** The lane and column, from D's address on, of an element of a CTA's part of D, from the PTX ISA. */
const placeInTensorMemory: Readonly<
  Record<string, (row: number, column: number, n: number) => [lane: number, column: number]>
> = {
  '1 × 64': (row, column) => [32 * Math.floor(row / 16) + (row % 16), column],
  '1 × 128': (row, column) => [row, column],
  '2 × 128': (row, column, n) => [column < n / 2 ? row : 64 + row, column % (n / 2)],
  '2 × 256': (row, column) => [row, column],
};

/** One instruction with all that it works on, from random bits. */
export interface Trial {
  readonly instruction: Omit<MmaInstruction, 'a' | 'b'> & Record<'a' | 'b', OperandFormatName>;
  readonly ctas: readonly MmaCta[];
  readonly a: PatternArray;
  readonly b: PatternArray;
  readonly c: Uint32Array;
}

export interface TrialOptions {
  readonly group: 1 | 2;
  readonly m: number;
  readonly n: number;
  readonly a: OperandFormatName;
  readonly b?: OperandFormatName;
  readonly aSpace?: 'shared' | 'tensor';
  readonly aMajor?: Major;
  readonly bMajor?: Major;
  readonly swizzle?: SwizzleMode;
  readonly spread?: Spread;
  readonly accumulate?: boolean;
  readonly firstLane?: number;
  readonly seed?: number;
}

/** Columns of D and of A in tensor memory. */
export const column = { d: 100, a: 480 };

/** Draws operands and puts them into the memories of one CTA or two. */
export function createTrial(options: TrialOptions): Trial {
  const { group, m, n, a: aFormat, b: bFormat = aFormat, accumulate = true } = options;
  const { aSpace = 'shared', aMajor = 'k', bMajor = 'k', swizzle = '128B' } = options;
  const { spread = 'bits', firstLane = 0 } = options;
  const word = wordSource(options.seed ?? 1);
  const k = 32 / bytesOf(aFormat);
  const [a, b] = [
    randomMatrix(aFormat, m * k, spread, word),
    randomMatrix(bFormat, n * k, spread, word),
  ];
  const c = new Uint32Array(m * n);
  fillPatterns('fp32', c, spread, 20, word);
  const ctas = Array.from({ length: group }, createCta);
  const aDescriptor = denseDescriptor(swizzle, aMajor, 1024, k, a.BYTES_PER_ELEMENT);
  const bOperand = denseDescriptor(swizzle, bMajor, 65536, k, b.BYTES_PER_ELEMENT);
  ctas.forEach(({ shared, tensor }, i) => {
    const ofA = a.subarray((i * m * k) / group, ((i + 1) * m * k) / group);
    placeMatrix(shared, bOperand, k, b.subarray((i * n * k) / group, ((i + 1) * n * k) / group));
    if (aSpace === 'shared') placeMatrix(shared, aDescriptor, k, ofA);
    else {
      const words = new Uint32Array(ofA.slice().buffer);
      words.forEach((value, j) => {
        const [lane] = placeInTensorMemory[`${group} × ${m}`](Math.floor(j / 8), 0, 2);
        tensor.store.words[(firstLane + lane) * 512 + column.a + (j % 8)] = value;
      });
    }
    forEachElementOfD({ group, m, n, firstLane }, (index, place) => {
      tensor.store.words[place] = c[(i * m * n) / group + index];
    });
  });
  const instruction: Trial['instruction'] = {
    group,
    a: aFormat,
    b: bFormat,
    shape: { m, n, k },
    accumulate,
    bOperand,
    d: tensorAddress(firstLane, column.d),
    aOperand:
      aSpace === 'shared'
        ? { space: 'shared', descriptor: aDescriptor }
        : { space: 'tensor', address: tensorAddress(firstLane, column.a) },
  };
  return { instruction, ctas, a, b, c };
}

/** Calls `visit` with each index of a CTA's part of D, [row][column], and its word in tensor memory. */
export function forEachElementOfD(
  { group, m, n, firstLane = 0 }: Pick<TrialOptions, 'group' | 'm' | 'n' | 'firstLane'>,
  visit: (index: number, place: number) => void,
): void {
  for (let index = 0; index < (m * n) / group; index++) {
    const [lane, offset] = placeInTensorMemory[`${group} × ${m}`](
      Math.floor(index / n),
      index % n,
      n,
    );
    visit(index, (firstLane + lane) * 512 + column.d + offset);
  }
}

/** Executes a trial; D [m][n], and how many words of tensor memory outside of D have changed. */
export function execute(trial: Trial, options: TrialOptions): { d: Uint32Array; changed: number } {
  const { group, m, n } = options;
  const d = new Uint32Array(m * n);
  const before = trial.ctas.map(({ tensor }) => tensor.store.words.slice());
  unitOf(arithmeticOf(trial.instruction.a, trial.instruction.b)).execute(
    trial.instruction,
    trial.ctas,
  );
  let changed = 0;
  trial.ctas.forEach(({ tensor }, i) => {
    const isOfD = new Uint8Array(tensor.store.words.length);
    forEachElementOfD(options, (index, place) => {
      d[(i * m * n) / group + index] = tensor.store.words[place];
      isOfD[place] = 1;
    });
    tensor.store.words.forEach((value, j) => {
      if (isOfD[j] === 0 && value !== before[i][j]) changed++;
    });
  });
  return { d, changed };
}

/** What the trial's product is by definition, with the arithmetic of tcgen05.mma or another. */
export function productOf(
  { instruction, a, b, c }: Trial,
  arithmetic = arithmeticOf(instruction.a, instruction.b),
): Uint32Array {
  const { shape, accumulate } = instruction;
  return tensorCoreProduct(arithmetic, {
    ...shape,
    a,
    aFormat: instruction.a,
    bTransposed: b,
    bFormat: instruction.b,
    c: accumulate ? c : new Uint32Array(c.length),
  });
}
