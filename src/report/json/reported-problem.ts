import type { FormatName } from '../../formats/index.js';
import { type Problem, problemShape, type Window } from '../../problem/index.js';
import { formatCount, formatNumber } from '../../words/index.js';

/** The sizes and settings of a problem, as every report gives them. */
export interface ReportedProblem {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly seqlenQ: number;
  readonly seqlenK: number;
  readonly qkDim: number;
  readonly vDim: number;
  readonly formats: Readonly<Record<'q' | 'k' | 'v', FormatName>>;
  readonly scale: number;
  readonly causal: boolean;
  readonly window: Window | null;
  readonly softcap: number | null;
}

/** @throws RequestError when the problem's shapes do not fit together */
export function reportedProblem(problem: Problem): ReportedProblem {
  const shape = problemShape(problem);
  const { q, k, v, scale, causal, window, softcap } = problem;
  return {
    batch: shape.batch,
    heads: shape.heads,
    kvHeads: shape.kvHeads,
    seqlenQ: shape.queries,
    seqlenK: shape.keys,
    qkDim: shape.qkDim,
    vDim: shape.vDim,
    formats: { q: q.format, k: k.format, v: v.format },
    scale: scale === 0 ? 0 : scale,
    causal,
    window: window === null ? null : { left: window.left, right: window.right },
    softcap,
  };
}

/** The sizes and settings of a problem, in one sentence's worth of words. */
export function describeReportedProblem(problem: ReportedProblem): string {
  const { batch, heads, kvHeads, seqlenQ, seqlenK, qkDim, vDim, formats, scale, window } = problem;
  const { q, k, v } = formats;
  const parts = [
    ...(batch === 1 ? [] : [`batch ${batch}`]),
    formatCount(heads, 'head') + (kvHeads === heads ? '' : ` (${kvHeads} of K and V)`),
    `${seqlenQ} queries × ${seqlenK} keys`,
    `dim ${qkDim}${vDim === qkDim ? '' : ` (V ${vDim})`}`,
    q === k && k === v ? q : `q ${q}, k ${k}, v ${v}`,
    `scale ${formatNumber(scale)}${scale === 1 / Math.sqrt(qkDim) ? ` (1/√${qkDim})` : ''}`,
    ...(problem.causal ? ['causal'] : []),
    ...(window === null ? [] : [`window ${window.left},${window.right}`]),
    ...(problem.softcap === null ? [] : [`softcap ${formatNumber(problem.softcap)}`]),
  ];
  return parts.join(', ');
}
