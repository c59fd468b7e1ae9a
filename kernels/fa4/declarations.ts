import { exactLaws, type ModelPromises } from '../promises.js';
import {
  type Fa4Architecture,
  type Fa4Format,
  fa4Formats,
  fa4TensorCore,
} from './configuration.js';
import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';

/** Settings that change the bits of FlashAttention-4's forward and must do no harm. */
const configurations: readonly Readonly<Record<string, string>>[] = [
  { 'rescale.threshold': '0' },
  { 'rescale.threshold': '0.5' },
  { 'exp2.frequency': '0' },
  { 'exp2.degree': '5' },
  { 'lse.fused': 'false' },
  { blockKeys: '64' },
  { splits: '2' },
  { splits: '5' },
  { architecture: 'sm_90' },
  { architecture: 'sm_103' },
];

/**
 * The largest head dimension without tuned columns: from 128 on their split between polynomial and
 * hardware depends on masks and lengths, so that the bits of a row do too, unless it is set.
 */
const largestUntunedDim = 112;
const tuningKeys: readonly string[] = ['exp2.frequency', 'exp2.reserve', 'exp2.startFragment'];

/** The threshold that problems are aimed at: the chosen one, unless nothing is ever rescaled. */
function aimedThreshold(text: string | undefined): number {
  const usual = fa4Formats.bf16.rescaleThreshold;
  const value = text === undefined ? usual : Number(text);
  return Number.isFinite(value) && value > 0 ? value : usual;
}

/** Promises of the model of FlashAttention-4's forward in these settings. */
export function fa4Promises(settings: ReadonlyMap<string, string>): ModelPromises {
  const isTuned = tuningKeys.every((key) => settings.has(key));
  return {
    formats: Object.keys(fa4Formats) as Fa4Format[],
    // The maximum is that of the raw scores.
    scales: ['default', 'odd'],
    softcap: true,
    // A sink takes no part in the maximum: where it exceeds that by 128 / log2 e its weight and the LSE overflow.
    unpromised: ['sink'],
    sizes: { qkDim: { max: isTuned ? 256 : largestUntunedDim }, vDim: { max: 256 } },
    laws: {
      ...exactLaws,
      // Groups share tiles, for which other columns are computed in software.
      'grouped-heads': isTuned || settings.get('packGqa') === 'false' ? 'bits' : 'bound',
      'decode-equals-prefill': 'bits',
      'causal-is-window': 'bits',
      'exact-exp2': 'bits',
    },
    lse: true,
    blockKeys: Number(settings.get('blockKeys') ?? 128),
    rescaleThreshold: aimedThreshold(settings.get('rescale.threshold')),
    configurations,
  };
}

/** Rescale thresholds for 16-bit inputs and for fp8, which always rescales. */
const thresholds = ['8', '0'];

/** Settings of the exponential: as tuned, in every degree, by hardware only, in its other frequencies. */
const exponentials: readonly Readonly<Record<string, string>>[] = [
  {},
  ...['1', '2', '4', '5'].map((degree) => ({ 'exp2.degree': degree })),
  ...['0', '10', '16', '32'].map((frequency) => ({ 'exp2.frequency': frequency })),
];

/** Settings of the compiled kernels beside their tuning: for the other GPU, and in splits of the keys. */
const kernels: readonly Readonly<Record<string, string>>[] = [
  { architecture: 'sm_103' },
  ...['2', '3', '4', '5', '6', '7', '8'].map((splits) => ({ splits })),
];

/**
 * Settings in which an output of unknown origin is compared with FlashAttention-4's. A kernel comes before settings that may have
 * its bits, as `exp2.frequency=0` has those of sm_103.
 */
export const fa4Candidates: readonly Readonly<Record<string, string>>[] = [
  ...thresholds.map((threshold) => ({ 'rescale.threshold': threshold })),
  ...kernels,
  ...thresholds.flatMap((threshold) =>
    exponentials.slice(1).map((settings) => ({ 'rescale.threshold': threshold, ...settings })),
  ),
];

const ptxConversions = 'cvt, fp32 add, mul and fma: sm_90 silicon';
/** Evidence by the bits of an input element, as compiled for sm_100a and sm_103a and elsewhere. */
const order = {
  16: {
    compiled:
      'order of operations: the bits of the compiled kernel; on sm_90 whole outputs equal silicon',
    read: 'order of operations: FlashAttention-4 sources; on sm_90 whole outputs equal silicon',
  },
  8: {
    compiled:
      'order of operations: the bits of the compiled kernel; no fp8 output of any GPU was compared',
    read: 'order of operations: FlashAttention-4 sources; no fp8 output of any GPU was compared',
  },
} as const;
const combine = {
  compiled: 'combine of the splits: the bits of the compiled kernel; the assembler may contract',
  read: 'combine of the splits: FlashAttention-4 sources; the assembler may contract',
} as const;

/** Evidence for the forward model's bits on an architecture, a line each. */
export function fa4Evidence(
  architecture: Fa4Architecture,
  format: Fa4Format,
  splits = 1,
): string[] {
  const shown = architecture === 'sm_90' || architecture === 'sm_110' ? 'read' : 'compiled';
  const tensorCore = tensorCoreEvidence(fa4TensorCore(architecture, format));
  return [
    `matrix products: ${tensorCore}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture].label}`,
    'software exp2: sm_90 silicon, every input (IEEE operations, the same everywhere)',
    ptxConversions,
    order[fa4Formats[format].bits][shown],
    ...(splits > 1 ? [combine[shown]] : []),
  ];
}
