import { formats, type FormatName } from '../../formats/index.js';
import { recurrentFamilies, type RecurrentProblem } from '../../problem/index.js';
import {
  recurrentOperands,
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentValue,
} from '../../../kernels/index.js';
import type { RecurrentDeclaration } from './declaration.js';

/** Tokens of a chunk that kernels take at most, where nothing is declared. */
const usualChunk = 64;

/** A smaller chunk that kernels take too: its states are read more often, so that no larger one's bounds cover it. */
const smallChunk = 16;

/** Tokens of a chunk that Mamba-2's kernels take at most: mamba_ssm's layers have chunks of 256. */
const mamba2Chunk = 256;

/** Value dimensions that a program of the recurrent form's gradients takes, as fla's do: more of them store fewer shares. */
const usualValueBlock = 8;

/** Formats of all values: fp32 but for those named. */
export function recurrentFormats(
  named: Readonly<Partial<Record<RecurrentValue, FormatName>>>,
): RecurrentArithmetic['formats'] {
  const entries = recurrentValues.map((value) => [value, named[value] ?? 'fp32'] as const);
  return Object.fromEntries(entries) as Record<RecurrentValue, FormatName>;
}

/** The format that products of a chunk read where nothing is declared: that of the values; tf32 for wider ones, and bf16 for those of 8 bits or less. */
function usualOperand({ v }: RecurrentProblem): FormatName {
  const { precision, storageBits } = formats[v.format];
  if (storageBits < 16) return 'bf16';
  return precision > formats.tf32.precision ? 'tf32' : v.format;
}

/** The arithmetic of a kernel in chunks whose intermediates are in a format. */
function chunkedArithmetic(
  problem: RecurrentProblem,
  { state, intermediate }: RecurrentDeclaration,
  chunk: number,
): RecurrentArithmetic {
  const format = intermediate ?? usualOperand(problem);
  const named = Object.fromEntries(recurrentOperands.map((value) => [value, format]));
  return {
    form: 'chunked',
    chunk,
    inverse: { block: 16 },
    formats: recurrentFormats({
      ...named,
      'decayed-operand': 'tf32',
      ...(state && { state }),
    }),
    outputs: {},
  };
}

/** The arithmetic of a kernel token by token. */
function recurrentArithmetic(
  { family, v }: RecurrentProblem,
  { state }: RecurrentDeclaration,
): RecurrentArithmetic {
  return {
    form: 'recurrent',
    chunk: 1,
    inverse: 'substitution',
    formats: recurrentFormats({ 'stored-write': v.format, ...(state && { state }) }),
    ...(recurrentFamilies[family].write === 'delta' ? { valueBlock: usualValueBlock } : {}),
    outputs: {},
  };
}

/**
 * The arithmetics that a kernel may have by what is declared of it; the largest of their bounds is what it may err by. Where no form is
 * declared these are both, where no chunk is, chunks of 64 tokens and of 16, and of mamba2 of 256 too. Intermediates of chunks are in the declared format or that of the values
 * (tf32 where that is wider, as tensor cores read them), all else in fp32.
 */
export function arithmeticsOf(
  problem: RecurrentProblem,
  declared: RecurrentDeclaration,
): readonly RecurrentArithmetic[] {
  const { form, chunk } = declared;
  const usual = problem.family === 'mamba2' ? [mamba2Chunk] : [];
  const chunks = chunk === undefined ? [...usual, usualChunk, smallChunk] : [chunk];
  return [
    ...(form === 'chunked' ? [] : [recurrentArithmetic(problem, declared)]),
    ...(form === 'recurrent'
      ? []
      : chunks.map((tokens) => chunkedArithmetic(problem, declared, tokens))),
  ];
}

/** An arithmetic in words. */
export function describeArithmetic({ form, chunk, formats: of }: RecurrentArithmetic): string {
  return form === 'recurrent'
    ? `token by token, state in ${of.state}`
    : `chunks of ${chunk} tokens, intermediates in ${of.write}, state in ${of.state}`;
}

/** What {@link arithmeticsOf} takes a kernel's arithmetic to be, in words for reports. */
export const describeArithmetics = (
  problem: RecurrentProblem,
  declared: RecurrentDeclaration,
): string => arithmeticsOf(problem, declared).map(describeArithmetic).join('; or ');
