import type { DiagnosisCandidate } from './diagnosis.js';
import type { Agreement } from './measure-agreement.js';

/** Candidates that are listed at most. */
const mostCandidates = 3;
/** The least part of the squared error that makes a candidate. */
const leastCandidateShare = 0.1;

/** The causes that come nearest to explaining the sample, one of each kind, the nearest first. */
export function nearestCandidates(tried: readonly Agreement[]): DiagnosisCandidate[] {
  const found = new Map<string, DiagnosisCandidate>();
  const near = tried
    .filter(({ share, rows }) => share >= leastCandidateShare && rows > 0)
    .filter(({ hypothesis }) => hypothesis.fitted !== true)
    .sort((a, b) => b.share - a.share);
  for (const { hypothesis, share } of near) {
    const { id, statement } = hypothesis;
    if (!found.has(id)) found.set(id, { id, sentence: statement, explained: Math.min(share, 1) });
    if (found.size === mostCandidates) break;
  }
  return [...found.values()];
}
