import { alignColumns } from './align-columns.js';
import type { Candidate } from './candidates.js';
import type { Identification } from './identify-kernel.js';

function nameOf({ model, settings }: Candidate): string {
  return [model, ...Object.entries(settings).map(([key, value]) => `${key}=${value}`)].join(' ');
}

/** Which kernel an output looks like, as plain text: a line for each candidate, the likeliest first. */
export function renderIdentification(identification: Identification): string {
  const { elements, misrounded, matches, skipped } = identification;
  const correlation = (value: number | null): string => (value === null ? '-' : value.toFixed(3));
  return [
    `${elements} elements, ${misrounded} not correctly rounded. Likeness: of the elements that either does`,
    'not round correctly, the share that is equal. Correlations: of the residuals from the oracle, and',
    'from the rounded oracle',
    ...alignColumns([
      ['', 'equal', 'of all', 'likeness', 'largest difference', 'oracle', 'rounded'],
      ...matches.map((match) => [
        nameOf(match),
        String(match.equal),
        `${((100 * match.equal) / Math.max(elements, 1)).toFixed(2)} %`,
        match.likeness.toFixed(3),
        match.largestDifference.toExponential(1),
        correlation(match.correlation),
        correlation(match.correlationBeyondRounding),
      ]),
    ]),
    ...skipped.map((candidate) => `  ${nameOf(candidate)}: ${candidate.reason}`),
  ].join('\n');
}
