/** A kernel model with settings, as text by key, that differ from what it would choose. */
export interface Candidate {
  readonly model: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Rescale thresholds of FlashAttention-4 for 16-bit inputs and for fp8, which always rescales. */
const thresholds = ['8', '0'];

/** How weights are computed: as tuned, in every degree, by hardware only, in its other frequencies. */
const exponentials: readonly Readonly<Record<string, string>>[] = [
  {},
  ...['1', '2', '4', '5'].map((degree) => ({ 'exp2.degree': degree })),
  ...['0', '10', '16', '32'].map((frequency) => ({ 'exp2.frequency': frequency })),
];

/** The kernels that an unknown output is compared with by default; the likelier of equals first. */
export const defaultCandidates: readonly Candidate[] = [
  ...thresholds.flatMap((threshold) =>
    exponentials.map((settings) => ({
      model: 'fa4',
      settings: { 'rescale.threshold': threshold, ...settings },
    })),
  ),
  { model: 'naive-fp32', settings: {} },
  { model: 'naive-input', settings: {} },
];
