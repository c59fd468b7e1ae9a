import type { FormatName } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';

/** Formats of states and intermediates that may be declared: with fewer bits nothing is left to judge. */
export const recurrentStateFormats = [
  'fp32',
  'bf16',
  'fp16',
] as const satisfies readonly FormatName[];
/** See {@link recurrentStateFormats}. */
export const recurrentIntermediateFormats = [
  'fp32',
  'tf32',
  'bf16',
  'fp16',
] as const satisfies readonly FormatName[];

/** Most tokens of a chunk that may be declared. */
export const largestRecurrentChunk = 1024;

/** What is declared of a kernel of linear attention; what is left out may be as in any correct kernel. */
export interface RecurrentDeclaration {
  /** `recurrent`: token by token; `chunked`: some tokens at a time. Default: either. */
  readonly form?: 'recurrent' | 'chunked' | undefined;
  /** Tokens of a chunk. */
  readonly chunk?: number | undefined;
  /** The format that the state is kept in from token to token or from chunk to chunk. */
  readonly state?: (typeof recurrentStateFormats)[number] | undefined;
  /** The format of W, U and what is written, of the inverse, and of products within a chunk. */
  readonly intermediate?: (typeof recurrentIntermediateFormats)[number] | undefined;
}

/** Declarations by name. */
export const recurrentPresets = {
  recurrent: { form: 'recurrent' },
  chunked: { form: 'chunked' },
  fla: { form: 'chunked', chunk: 64 },
} as const satisfies Readonly<Record<string, RecurrentDeclaration>>;

/** A name in {@link recurrentPresets}. */
export type RecurrentPreset = keyof typeof recurrentPresets;

/** @throws RequestError for a declaration with values that may not be declared */
export function checkRecurrentDeclaration({
  chunk,
  state,
  intermediate,
}: RecurrentDeclaration): void {
  const isListed = (format: string | undefined, list: readonly string[]) =>
    format === undefined || list.includes(format);
  if (
    chunk !== undefined &&
    !(Number.isInteger(chunk) && chunk >= 1 && chunk <= largestRecurrentChunk)
  )
    throw new RequestError(
      `the declared chunk is ${chunk}; give a whole number of tokens from 1 to ${largestRecurrentChunk}`,
    );
  if (!isListed(state, recurrentStateFormats))
    throw new RequestError(
      `the declared state is ${state}; give ${recurrentStateFormats.join(', ')}`,
    );
  if (!isListed(intermediate, recurrentIntermediateFormats))
    throw new RequestError(
      `the declared intermediate is ${intermediate}; give ${recurrentIntermediateFormats.join(', ')}`,
    );
}
