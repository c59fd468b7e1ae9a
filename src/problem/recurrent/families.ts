/** What the state is multiplied by before a token is written: nothing, or a decay that is one number by head or one by key dimension. */
export type Decay = 'none' | 'fixed-by-head' | 'by-head' | 'by-key-dimension';

/** What is written beside the key: the value, or what the state lacks of the value, times the write strength β. */
export type Write = 'additive' | 'delta';

/** A family of recurrences: its decay and its write. */
export interface RecurrentLaw {
  readonly decay: Decay;
  readonly write: Write;
}

/**
 * The families of linear attention by name. Sources: linear, Katharopoulos et al. 2020 (arXiv 2006.16236); retention, Sun et al. 2023
 * (2307.08621); simple-gla, the scalar decay of Mamba-2, Dao and Gu 2024 (2405.21060); gla, Yang et al. 2023 (2312.06635); delta, Yang et al.
 * 2024 (2406.06484); gated-delta, Yang et al. 2024 (2412.06464); kda, Kimi Linear 2025 (2510.26692); mamba2, the law of simple-gla of the values
 * and gates that Mamba-2 makes of its own inputs.
 */
export const recurrentFamilies = {
  linear: { decay: 'none', write: 'additive' },
  retention: { decay: 'fixed-by-head', write: 'additive' },
  'simple-gla': { decay: 'by-head', write: 'additive' },
  gla: { decay: 'by-key-dimension', write: 'additive' },
  delta: { decay: 'none', write: 'delta' },
  'gated-delta': { decay: 'by-head', write: 'delta' },
  kda: { decay: 'by-key-dimension', write: 'delta' },
  mamba2: { decay: 'by-head', write: 'additive' },
} as const satisfies Readonly<Record<string, RecurrentLaw>>;

/** A name in {@link recurrentFamilies}. */
export type RecurrentFamily = keyof typeof recurrentFamilies;

/** The families whose problems are q, k, v and gates themselves: all but mamba2. */
export const plainRecurrentFamilies = (Object.keys(recurrentFamilies) as RecurrentFamily[]).filter(
  (family) => family !== 'mamba2',
);
