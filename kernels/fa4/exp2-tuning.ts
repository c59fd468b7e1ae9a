import type { BlackwellArchitecture } from '../../src/hardware/index.js';
import { RequestError } from '../../src/request-error.js';

/**
 * Pairs of a tile row's probabilities that FlashAttention-4 computes with the polynomial instead of
 * the hardware unit. The row's columns are cut into fragments of 32; a pair is columns k and k + 1
 * of a fragment, k even.
 */
export interface Exp2Pattern {
  /** Columns of a period, in which the last `reserve` go to the polynomial; 0: hardware only. */
  readonly frequency: number;
  readonly reserve: number;
  /** Fragments before this one use the hardware, as does the last. */
  readonly startFragment: number;
}

/** Columns of a fragment. */
export const fragmentColumns = 32;

/** Fragments of a row of FlashAttention-4's tiles, 128 columns. */
export const fragmentsPerRow = 4;

/** Properties of a forward kernel that decide its tuning. */
export interface Exp2Configuration {
  /** Head dimension of Q and K; padded to a multiple of 16 in the kernel. */
  readonly headDim: number;
  readonly causal: boolean;
  /** Thread blocks that share one MMA instruction. */
  readonly ctas: 1 | 2;
  readonly architecture: BlackwellArchitecture;
  /** Bits of an input element: 16 for bf16 and fp16, 8 for fp8. */
  readonly inputBits: 16 | 8;
  /** Sliding window; default false. */
  readonly local?: boolean;
  /** Query heads of one kv head packed into the rows of a tile; default false. */
  readonly packedGroups?: boolean;
  /** Batches of sequences of unequal lengths; matters with packed groups only; default false. */
  readonly variableLength?: boolean;
}

/** A tuned configuration; `null` stands for any value. */
export interface Exp2Tuning {
  readonly headDim: number;
  readonly causal: boolean;
  readonly ctas: 1 | 2;
  readonly architecture: BlackwellArchitecture;
  readonly inputBits: 16 | 8 | null;
  readonly pattern: Exp2Pattern;
}

const off: Exp2Pattern = { frequency: 0, reserve: 4, startFragment: 0 };

function entry(
  [headDim, causal, ctas]: readonly [number, boolean, 1 | 2],
  architecture: BlackwellArchitecture,
  inputBits: 8 | null,
  pattern: Exp2Pattern,
): Exp2Tuning {
  return { headDim, causal, ctas, architecture, inputBits, pattern };
}

/**
 * The tuned configurations, the more particular first. Source: `_FP8_TUNING_CONFIG` and
 * `_TUNING_CONFIG` in flash_attn/cute/flash_fwd_sm100.py of flash-attn-4 4.0.0b36; the reserve of 4 is the
 * default of `apply_exp2_convert` in softmax.py. Compiled kernels give these columns (examples/flash-attention-4).
 */
export const exp2Tunings: readonly Exp2Tuning[] = [
  entry([128, false, 2], 'sm_100', 8, { frequency: 10, reserve: 4, startFragment: 1 }),
  entry([128, true, 1], 'sm_100', 8, { frequency: 8, reserve: 4, startFragment: 1 }),
  entry([128, false, 2], 'sm_100', null, { frequency: 10, reserve: 4, startFragment: 1 }),
  entry([128, true, 1], 'sm_100', null, { frequency: 16, reserve: 4, startFragment: 1 }),
  entry([192, false, 2], 'sm_100', null, { frequency: 16, reserve: 4, startFragment: 0 }),
  entry([192, true, 1], 'sm_100', null, { frequency: 32, reserve: 4, startFragment: 1 }),
  entry([128, false, 2], 'sm_103', null, off),
  entry([128, true, 1], 'sm_103', null, off),
  entry([192, false, 2], 'sm_103', null, off),
  entry([192, true, 1], 'sm_103', null, off),
  entry([256, false, 2], 'sm_100', null, { frequency: 14, reserve: 4, startFragment: 0 }),
  entry([256, true, 2], 'sm_100', null, { frequency: 14, reserve: 4, startFragment: 0 }),
];

/** The pattern of a configuration that is not tuned but uses the polynomial. */
const untuned: Exp2Pattern = { frequency: 16, reserve: 4, startFragment: 1 };
/** The frequency of that pattern for packed groups of query heads. */
const untunedPackedFrequency = 10;
/** The frequency for packed groups with sequences of unequal lengths, tuned or not. */
const variableLengthFrequency = 32;

/**
 * The pattern that FlashAttention-4's forward for Blackwell runs in a configuration: the tuned one,
 * else period 16 from fragment 1 on for head dimensions up to 128 on sm_100, else hardware only.
 * Packed groups of more than 64 dimensions without a mask have frequencies of their own.
 *
 * @throws RequestError for a head dimension that is no whole number from 1 to 256.
 */
export function exp2Pattern(configuration: Exp2Configuration): Exp2Pattern {
  const { headDim, causal, ctas, inputBits } = configuration;
  // sm_110 is tuned as sm_100: the key of the table is whether it is sm_103.
  const architecture = configuration.architecture === 'sm_103' ? 'sm_103' : 'sm_100';
  const { local = false, packedGroups = false, variableLength = false } = configuration;
  if (!(Number.isInteger(headDim) && headDim >= 1 && headDim <= 256))
    throw new RequestError(`head dimension ${headDim}; give a whole number from 1 to 256`);
  const padded = 16 * Math.ceil(headDim / 16);
  const tuned = exp2Tunings.find(
    (tuning) =>
      tuning.headDim === padded &&
      tuning.causal === causal &&
      tuning.ctas === ctas &&
      tuning.architecture === architecture &&
      (tuning.inputBits ?? inputBits) === inputBits,
  );
  const isEnabled =
    tuned === undefined ? padded <= 128 && architecture !== 'sm_103' : tuned.pattern.frequency > 0;
  if (!isEnabled) return tuned?.pattern ?? off;
  const pattern = tuned?.pattern ?? untuned;
  if (!(packedGroups && padded > 64 && !causal && !local)) return pattern;
  const frequency = variableLength
    ? variableLengthFrequency
    : (tuned?.pattern.frequency ?? untunedPackedFrequency);
  return { ...pattern, frequency };
}

/**
 * Whether column k (0 to 31) of a fragment of a row is computed by the polynomial; both columns of a
 * pair are computed alike. Source: `apply_exp2_convert` in flash_attn/cute/softmax.py.
 *
 * @param fragments fragments of the row, default 4
 * @throws RequestError for a fragment or column that the row does not have.
 */
export function usesPolynomial(
  pattern: Exp2Pattern,
  fragment: number,
  k: number,
  fragments: number = fragmentsPerRow,
): boolean {
  if (!(Number.isInteger(fragment) && fragment >= 0 && fragment < fragments))
    throw new RequestError(`no fragment ${fragment}; a row has fragments 0 to ${fragments - 1}`);
  if (!(Number.isInteger(k) && k >= 0 && k < fragmentColumns))
    throw new RequestError(`no column ${k}; a fragment has columns 0 to ${fragmentColumns - 1}`);
  const { frequency, reserve, startFragment } = pattern;
  if (frequency === 0 || fragment < startFragment || fragment === fragments - 1) return false;
  const first = k - (k % 2);
  return first % frequency >= frequency - reserve;
}

/** Columns of a block that the polynomial computes. */
export function polynomialColumns({
  exp2,
  blockKeys,
}: {
  readonly exp2: Exp2Pattern;
  readonly blockKeys: number;
}): boolean[] {
  const fragments = blockKeys / fragmentColumns;
  return Array.from({ length: blockKeys }, (_, j) =>
    usesPolynomial(exp2, Math.floor(j / fragmentColumns), j % fragmentColumns, fragments),
  );
}

/** The share of a row's columns that the polynomial computes, from 0 to 1. */
export function polynomialShare(pattern: Exp2Pattern, fragments: number = fragmentsPerRow): number {
  let count = 0;
  for (let fragment = 0; fragment < fragments; fragment++)
    for (let k = 0; k < fragmentColumns; k++)
      if (usesPolynomial(pattern, fragment, k, fragments)) count++;
  return count / (fragments * fragmentColumns);
}
