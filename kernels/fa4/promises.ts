import { exactLaws, type ModelPromises } from '../model-promises.js';
import { fa4Formats, type Fa4Format } from './formats.js';

/** Settings that change the bits of FlashAttention-4's forward and must not harm. */
const configurations: readonly Readonly<Record<string, string>>[] = [
  { 'rescale.threshold': '0' },
  { 'rescale.threshold': '0.5' },
  { 'exp2.frequency': '0' },
  { 'exp2.degree': '5' },
  { 'lse.fused': 'true' },
  { blockKeys: '64' },
  { splits: '2' },
  { splits: '5' },
  { architecture: 'sm_90' },
  { architecture: 'sm_103' },
];

/**
 * From 128 on the split of columns between polynomial and hardware depends on masks and lengths, so
 * that the bits of a row do too, unless it is set.
 */
const largestUntunedDim = 112;
const tuningKeys: readonly string[] = ['exp2.frequency', 'exp2.reserve', 'exp2.startFragment'];

/** The threshold that problems are aimed at: as it is set, unless nothing is ever rescaled. */
function aimedThreshold(text: string | undefined): number {
  const usual = fa4Formats.bf16.rescaleThreshold;
  const value = text === undefined ? usual : Number(text);
  return Number.isFinite(value) && value > 0 ? value : usual;
}

/** What the model of FlashAttention-4's forward promises in these settings. */
export function fa4Promises(settings: ReadonlyMap<string, string>): ModelPromises {
  const isTuned = tuningKeys.every((key) => settings.has(key));
  return {
    formats: Object.keys(fa4Formats) as Fa4Format[],
    // The maximum is that of the raw scores.
    scales: ['default', 'odd'],
    sizes: { qkDim: { max: isTuned ? 256 : largestUntunedDim }, vDim: { max: 256 } },
    laws: {
      ...exactLaws,
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
