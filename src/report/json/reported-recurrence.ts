import type { FormatName } from '../../formats/index.js';
import {
  recurrentShape,
  type RecurrentFamily,
  type RecurrentProblem,
} from '../../problem/index.js';
import { formatCount, formatNumber } from '../../words/index.js';

/** The sizes and settings of a problem of linear attention, as reports give them. */
export interface ReportedRecurrence {
  readonly family: RecurrentFamily;
  /** Tokens of each sequence. */
  readonly lengths: readonly number[];
  /** Whether the sequences are packed, rather than a batch. */
  readonly packed: boolean;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly formats: Readonly<Record<'q' | 'k' | 'v', FormatName>>;
  /** The format of the initial state; null for none. */
  readonly initialState: FormatName | null;
  readonly scale: number;
  /** The epsilon by which q and k are normalised; null where they are not. */
  readonly normalisation: number | null;
}

/**
 * The reported sizes and settings of a problem of linear attention.
 * @throws RequestError when the problem's tensors do not fit together
 */
export function reportedRecurrence(problem: RecurrentProblem): ReportedRecurrence {
  const { sequences, keyHeads, valueHeads, keyDim, valueDim } = recurrentShape(problem);
  const { family, q, k, v, cuSeqlens, initialState, normalisation } = problem;
  const scale = problem.scale ?? 1 / Math.sqrt(keyDim);
  return {
    family,
    lengths: sequences.map(({ first, end }) => end - first),
    packed: cuSeqlens !== undefined,
    keyHeads,
    valueHeads,
    keyDim,
    valueDim,
    formats: { q: q.format, k: k.format, v: v.format },
    initialState: initialState?.format ?? null,
    scale: scale === 0 ? 0 : scale,
    normalisation: normalisation?.epsilon ?? null,
  };
}

/** The sizes and settings of a problem of linear attention, in the words of one sentence. */
export function describeReportedRecurrence(problem: ReportedRecurrence): string {
  const { family, lengths, packed, keyHeads, valueHeads, keyDim, valueDim, formats } = problem;
  const { scale, normalisation, initialState } = problem;
  const { q, k, v } = formats;
  const parts = [
    family,
    packed
      ? `packed sequences of ${lengths.join(', ')} tokens`
      : `${lengths.length === 1 ? '' : `batch ${lengths.length} of `}${formatCount(lengths[0] ?? 0, 'token')}`,
    formatCount(valueHeads, 'head') + (keyHeads === valueHeads ? '' : ` (${keyHeads} of Q and K)`),
    `dim ${keyDim}${valueDim === keyDim ? '' : ` (V ${valueDim})`}`,
    q === k && k === v ? q : `q ${q}, k ${k}, v ${v}`,
    `scale ${formatNumber(scale)}${scale === 1 / Math.sqrt(keyDim) ? ` (1/√${keyDim})` : ''}`,
    ...(normalisation === null ? [] : [`normalised with epsilon ${formatNumber(normalisation)}`]),
    ...(initialState === null ? [] : [`initial state ${initialState}`]),
  ];
  return parts.join(', ');
}
