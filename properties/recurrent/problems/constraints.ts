import type { FormatName } from '../../../src/formats/index.js';
import type { RecurrentFamily } from '../../../src/problem/index.js';

/** The problems that may be drawn. */
export interface RecurrentConstraints {
  /** One at least. */
  readonly families: readonly RecurrentFamily[];
  /** Formats of q, k and v, which share one; one at least. */
  readonly formats: readonly FormatName[];
  /** Formats of initial states; none for problems without. */
  readonly initialState: readonly FormatName[];
  /** The only dimensions of keys and of values; null for any. */
  readonly dims: readonly number[] | null;
  /** The only numbers of value heads that share a key head; null for any. */
  readonly groupSizes: readonly number[] | null;
  /** Whether sequences may be packed. */
  readonly packed: boolean;
  /** Whether q and k may have to be normalised. */
  readonly normalisation: boolean;
  /** Whether gates may be −∞. */
  readonly infiniteGates: boolean;
  /** Tokens that a kernel takes at a time, at which lengths are aimed. */
  readonly chunk: number;
  /** Whether problems have a dO, and may have a dS_T. */
  readonly gradients: boolean;
}
