import type { FormatName } from '../../formats/index.js';

/** What is declared of a kernel of linear attention; what is left out may be as in any correct kernel. */
export interface RecurrentDeclaration {
  /** `recurrent`: token by token; `chunked`: some tokens at a time. Default: either. */
  readonly form?: 'recurrent' | 'chunked' | undefined;
  /** Tokens of a chunk. */
  readonly chunk?: number | undefined;
  /** The format that the state is kept in from token to token or from chunk to chunk. */
  readonly state?: FormatName | undefined;
  /** The format of W, U and what is written, of the inverse, and of products within a chunk. */
  readonly intermediate?: FormatName | undefined;
}

/** Declarations by name. */
export const recurrentPresets = {
  recurrent: { form: 'recurrent' },
  chunked: { form: 'chunked' },
  fla: { form: 'chunked', chunk: 64 },
} as const satisfies Readonly<Record<string, RecurrentDeclaration>>;

/** A name in {@link recurrentPresets}. */
export type RecurrentPreset = keyof typeof recurrentPresets;
