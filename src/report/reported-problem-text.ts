import { formatNumber } from '../audit/index.js';
import type { ReportedProblem } from './reported-problem.js';
import { formatCount } from './terminal-numbers.js';

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
