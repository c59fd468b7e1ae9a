import type { DiagnosisCandidate } from './diagnosis.js';
import type { Agreement } from './measure-agreement.js';

/** Candidates that are listed at most, and that are looked at. */
const mostCandidates = 3;
const mostLookedAt = 8;
/** The least part of the squared error that makes a candidate. */
const leastCandidateShare = 0.1;

/**
 * The causes that come nearest to explaining the sample, one of each kind, the nearest first.
 * @param shareOf the part of the squared error that one explains: that of an agreement may be of few rows
 */
export function nearestCandidates(
  tried: readonly Agreement[],
  shareOf: (agreement: Agreement) => number = ({ share }) => share,
): DiagnosisCandidate[] {
  const looked = new Map<string, Agreement>();
  const near = tried
    .filter(({ share, rows }) => share >= leastCandidateShare && rows > 0)
    .filter(({ hypothesis }) => hypothesis.fitted !== true)
    .sort((a, b) => b.share - a.share);
  for (const agreement of near) {
    const { id } = agreement.hypothesis;
    if (!looked.has(id)) looked.set(id, agreement);
    if (looked.size === mostLookedAt) break;
  }
  return [...looked]
    .map(([id, agreement]) => {
      const { statement } = agreement.hypothesis;
      return { id, sentence: statement, explained: Math.min(shareOf(agreement), 1) };
    })
    .filter(({ explained }) => explained >= leastCandidateShare)
    .sort((a, b) => b.explained - a.explained)
    .slice(0, mostCandidates);
}
