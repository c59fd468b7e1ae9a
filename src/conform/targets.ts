import { createExp2PolynomialArray, type PolynomialDegree } from '../../kernels/index.js';
import {
  conversions,
  createConversionArray,
  createSpecialFunctionArrays,
  specialFunctions,
  type ConversionName,
  type Float32SpecialFunctionName,
  type SpecialFunctionName,
} from '../hardware/index.js';
import { formats } from '../formats/index.js';
import type { ArrayFunction } from '../simd/index.js';
import { binadeBlocks, conversionEdgeBlocks } from './block-sample.js';

/** A function of one fp32 number, compared by the fingerprint of its results on all 2^32 inputs. */
export interface FingerprintTarget {
  readonly kind: 'fingerprint';
  /** The name in PTX; for a sequence of instructions, a name of its own. */
  readonly instruction: string;
  /** Stem of the names of a capture's files: `hash_<stem>.bin` and, where there are any, `pairs_<stem>…`. */
  readonly stem: string;
  /** Creates the model on arrays; one instance for each thread. */
  readonly createModel: () => ArrayFunction;
  /**
   * The blocks that a sample must have: all table segments, and the places where the function changes its behaviour.
   */
  readonly chosenBlocks: () => number[];
}

/** A function of 16 bits, compared on every input with the captured table of its results. */
export interface TableTarget {
  readonly kind: 'table';
  readonly instruction: string;
  /** The file of a capture that holds the table among others. */
  readonly file: TableFile;
  /** The model: from 16 bits to a result of `resultBytes` bytes. */
  readonly evaluate: (bits: number) => number;
  readonly resultBytes: 2 | 4;
}

/** The files of tables; their names end in .bin or .bin.gz. */
export type TableFile = 'half_tables' | 'widening_tables';

export type Target = FingerprintTarget | TableTarget;

/** Powers of two around which a function of the special function unit is compared more closely. */
interface Landmarks {
  /** Binades whose blocks are all sampled. */
  readonly whole: readonly number[];
  /** Exponents at which something changes. */
  readonly edges: readonly number[];
}

/**
 * Landmarks by instruction: the binades in which the results show every segment of its tables with
 * the most bits, and the ends of its range.
 */
const specialFunctionLandmarks: Readonly<Record<Float32SpecialFunctionName, Landmarks>> = {
  'ex2.approx.ftz.f32': { whole: [0, 6], edges: [-126, -24, -23, -1, 3, 7] },
  'ex2.approx.f32': { whole: [0, 6], edges: [-126, -24, -23, -1, 3, 7] },
  'rcp.approx.ftz.f32': { whole: [0], edges: [-127, -126, -1, 125, 126, 127] },
  'lg2.approx.ftz.f32': { whole: [-1, 0], edges: [-126, -64, -2, 2, 64, 127] },
  'rsqrt.approx.ftz.f32': { whole: [0, 1], edges: [-126, -125, -2, 2, 126, 127] },
  'rcp.approx.f32': { whole: [0], edges: [-127, -126, -1, 125, 126, 127] },
  'lg2.approx.f32': { whole: [-1, 0], edges: [-127, -126, -64, -2, 2, 64, 127] },
  'rsqrt.approx.f32': { whole: [0, 1], edges: [-127, -126, -125, -2, 2, 126, 127] },
  'sqrt.approx.ftz.f32': { whole: [0, 1], edges: [-127, -126, -125, -2, 2, 126, 127] },
  'sqrt.approx.f32': { whole: [0, 1], edges: [-127, -126, -125, -2, 2, 126, 127] },
  'sin.approx.ftz.f32': { whole: [-3, -2, -1, 0, 1, 2], edges: [-127, -126, -23, -10, 9, 24, 127] },
  'sin.approx.f32': { whole: [0, 1, 2], edges: [-127, -126, -23, -10, 9, 24, 127] },
  'cos.approx.ftz.f32': { whole: [-2, -1, 0, 1, 2], edges: [-127, -126, -23, -10, 9, 24, 127] },
  'cos.approx.f32': { whole: [0, 1, 2], edges: [-127, -126, -23, -10, 9, 24, 127] },
  'tanh.approx.f32': {
    whole: [-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2],
    edges: [-126, -9, 3, 127],
  },
};

function specialFunction(instruction: Float32SpecialFunctionName): FingerprintTarget {
  const { whole, edges } = specialFunctionLandmarks[instruction];
  return {
    kind: 'fingerprint',
    instruction,
    stem: instruction.replaceAll('.', '_'),
    createModel: () => createSpecialFunctionArrays()[instruction],
    chosenBlocks: () => binadeBlocks(whole, edges),
  };
}

/** The captured conversions from fp32, and the stems of their files. */
const conversionStems = {
  'cvt.rn.bf16x2.f32': 'cvt_rn_bf16_f32',
  'cvt.rn.f16x2.f32': 'cvt_rn_f16_f32',
  'cvt.rn.satfinite.e4m3x2.f32': 'cvt_rn_satfinite_e4m3_f32',
  'cvt.rn.satfinite.e5m2x2.f32': 'cvt_rn_satfinite_e5m2_f32',
  'cvt.rz.bf16x2.f32': 'cvt_rz_bf16_f32',
  'cvt.rz.f16x2.f32': 'cvt_rz_f16_f32',
  'cvt.rn.satfinite.bf16x2.f32': 'cvt_rn_satfinite_bf16_f32',
  'cvt.rn.satfinite.f16x2.f32': 'cvt_rn_satfinite_f16_f32',
  'cvt.rz.satfinite.bf16x2.f32': 'cvt_rz_satfinite_bf16_f32',
  'cvt.rz.satfinite.f16x2.f32': 'cvt_rz_satfinite_f16_f32',
} as const satisfies Partial<Record<ConversionName, string>>;

function conversion(instruction: keyof typeof conversionStems): FingerprintTarget {
  const { destination } = conversions[instruction];
  return {
    kind: 'fingerprint',
    instruction,
    stem: conversionStems[instruction],
    createModel: () => createConversionArray(instruction),
    chosenBlocks: () => conversionEdgeBlocks(formats[destination]),
  };
}

const degrees: readonly PolynomialDegree[] = [1, 2, 3, 4, 5];

function exp2Polynomial(degree: PolynomialDegree): FingerprintTarget {
  return {
    kind: 'fingerprint',
    instruction: `fa4_ex2_poly${degree}`,
    stem: `fa4_ex2_poly${degree}`,
    createModel: () => createExp2PolynomialArray(degree),
    chosenBlocks: () => binadeBlocks([0, 6], [-126, -26, -25, -1, 7, 21, 22, 23, 24, 50, 127]),
  };
}

function specialFunctionTable(instruction: SpecialFunctionName): TableTarget {
  const { evaluate } = specialFunctions[instruction];
  return { kind: 'table', instruction, file: 'half_tables', evaluate, resultBytes: 2 };
}

function bothLanes(instruction: 'cvt.rn.f16x2.e4m3x2' | 'cvt.rn.f16x2.e5m2x2'): TableTarget {
  const { evaluate } = conversions[instruction];
  return {
    kind: 'table',
    instruction,
    file: 'half_tables',
    evaluate: (pair) => ((evaluate(pair >>> 8) << 16) | evaluate(pair & 0xff)) >>> 0,
    resultBytes: 4,
  };
}

function lowLane(
  instruction: 'cvt.rn.satfinite.e4m3x2.f16x2' | 'cvt.rn.satfinite.e5m2x2.f16x2',
): TableTarget {
  const { evaluate } = conversions[instruction];
  return { kind: 'table', instruction, file: 'half_tables', evaluate, resultBytes: 2 };
}

function widening(instruction: 'cvt.f32.f16' | 'cvt.f32.bf16'): TableTarget {
  const { evaluate } = conversions[instruction];
  return { kind: 'table', instruction, file: 'widening_tables', evaluate, resultBytes: 4 };
}

/** The functions of 16 bits, those of one file in the order of their tables there. */
export const tableTargets: readonly TableTarget[] = [
  specialFunctionTable('ex2.approx.ftz.bf16'),
  specialFunctionTable('ex2.approx.f16'),
  specialFunctionTable('tanh.approx.bf16'),
  specialFunctionTable('tanh.approx.f16'),
  bothLanes('cvt.rn.f16x2.e4m3x2'),
  bothLanes('cvt.rn.f16x2.e5m2x2'),
  lowLane('cvt.rn.satfinite.e4m3x2.f16x2'),
  lowLane('cvt.rn.satfinite.e5m2x2.f16x2'),
  widening('cvt.f32.f16'),
  widening('cvt.f32.bf16'),
];

/** The functions of fp32 numbers. */
export const fingerprintTargets: readonly FingerprintTarget[] = [
  ...(Object.keys(specialFunctionLandmarks) as Float32SpecialFunctionName[]).map(specialFunction),
  ...degrees.map(exp2Polynomial),
  ...(Object.keys(conversionStems) as (keyof typeof conversionStems)[]).map(conversion),
];

/** Everything that can be compared with silicon. */
export const targets: readonly Target[] = [...fingerprintTargets, ...tableTargets];
