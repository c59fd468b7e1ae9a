import { decisive, lseRounding } from './acceptance.js';
import type { HypothesisContext } from './hypothesis.js';
import { type Agreement, rowCap } from './measure-agreement.js';
import type { DiagnosisCandidate } from './diagnosis.js';

/** The part of the cost by which two hypotheses may differ through their noise estimates alone. */
const estimateError = 0.02;
/**
 * In multiples of `decisive`: by how much a hypothesis that is fitted to the sample may be better than one
 * that is not, through roundings that agree.
 */
const fittedAdvantage = 3;

/**
 * −2 log likelihood of every hypothesis over the damaged rows, up to a constant: squared errors in units
 * of one noise for all, the largest that any of them expects, and of the LSE's.
 */
function costs(accepted: readonly Agreement[], vDim: number): number[] {
  const rows = accepted[0].residuals.squares.length;
  const totals = new Array<number>(accepted.length).fill(0);
  for (let row = 0; row < rows; row++) {
    let noise = 0;
    for (const { residuals } of accepted)
      if (residuals.noise[row] > noise) noise = residuals.noise[row];
    accepted.forEach(({ residuals }, i) => {
      const squares = residuals.squares[row];
      const ratio = squares === 0 ? 0 : squares / noise;
      totals[i] += vDim * (ratio < rowCap ? ratio : rowCap) + residuals.lse[row];
    });
  }
  return totals;
}

/**
 * The accepted hypotheses that explain the sample equally well, the likeliest first; in the order of
 * the table where nothing tells them apart.
 */
export function bestAgreements(
  accepted: readonly Agreement[],
  { onlyLse, shape }: HypothesisContext,
): Agreement[] {
  if (accepted.length === 0) return [];
  const totals = costs(accepted, shape.vDim);
  const cost = new Map(accepted.map((one, i) => [one, totals[i]]));
  const costOf = (one: Agreement) => cost.get(one)!;
  const least = Math.min(...totals);
  const rows = Math.max(1, ...accepted.map((one) => one.rows));
  const distinct = Math.max(1, ...accepted.map((one) => one.distinct));
  const slack = (decisive * rows) / distinct + estimateError * least;
  const isRigid = ({ hypothesis }: Agreement) =>
    hypothesis.adjusted !== true && hypothesis.fitted !== true;
  const likely = accepted.filter(
    (one) => costOf(one) <= least + (isRigid(one) ? fittedAdvantage : 1) * slack,
  );
  const rigid = likely.filter((one) => isRigid(one) && costOf(one) <= least + slack);
  const simplest = rigid.length > 0 ? rigid : likely;
  // What also explains why the sound rows are sound is better than what needs them to be spared.
  const fewestSpared = Math.min(...simplest.map(({ spared }) => spared.length));
  const consistent = simplest.filter(({ spared }) => spared.length === fewestSpared);
  // Among those, the LSE decides as far as its own rounding lets it.
  const leastLse = Math.min(...consistent.map(({ lse }) => lse.error));
  const best = consistent.filter(({ lse }) => lse.error <= 2 * leastLse + lseRounding);
  if (onlyLse) return best;
  // In steps, so that equal predictions computed in two ways keep their order.
  const likelihood = (one: Agreement) => Math.round(((costOf(one) - least) / slack) * 16);
  return best.sort((a, b) => likelihood(a) - likelihood(b));
}

/** Candidates that are listed at most. */
const mostCandidates = 3;
/** The least part of the squared error that makes a candidate. */
const leastShare = 0.1;

/** The causes that come nearest to explaining the sample, one of each kind, the nearest first. */
export function nearestCandidates(tried: readonly Agreement[]): DiagnosisCandidate[] {
  const found = new Map<string, DiagnosisCandidate>();
  const near = tried
    .filter(({ share, rows }) => share >= leastShare && rows > 0)
    .filter(({ hypothesis }) => hypothesis.fitted !== true)
    .sort((a, b) => b.share - a.share);
  for (const { hypothesis, share } of near) {
    const { id, statement } = hypothesis;
    if (!found.has(id)) found.set(id, { id, sentence: statement, explained: Math.min(share, 1) });
    if (found.size === mostCandidates) break;
  }
  return [...found.values()];
}
