/** Rescale thresholds for 16-bit inputs and for fp8, which always rescales. */
const thresholds = ['8', '0'];

/** How weights are computed: as tuned, in every degree, by hardware only, in its other frequencies. */
const exponentials: readonly Readonly<Record<string, string>>[] = [
  {},
  ...['1', '2', '4', '5'].map((degree) => ({ 'exp2.degree': degree })),
  ...['0', '10', '16', '32'].map((frequency) => ({ 'exp2.frequency': frequency })),
];

/** Settings in which an output of unknown origin is compared with FlashAttention-4's. */
export const fa4Candidates: readonly Readonly<Record<string, string>>[] = thresholds.flatMap(
  (threshold) => exponentials.map((settings) => ({ 'rescale.threshold': threshold, ...settings })),
);
