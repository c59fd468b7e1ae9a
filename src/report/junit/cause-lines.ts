import type { FileReport } from '../json/index.js';
import { placeText, worstRowText } from '../text/index.js';

/**
 * The cause of a failure, its place where the verdict does not state it, the worst row and the evidence, a line each;
 * none on a pass.
 */
export function causeLines(report: FileReport): string[] {
  const { diagnosis, findings } = report.verdict;
  if (findings.length === 0) return [];
  const [place, worst] = [placeText(report), worstRowText(report)];
  return [
    ...(diagnosis === null ? [] : [`Cause: ${diagnosis.sentence}`]),
    ...(place === null ? [] : [`Place: ${place}`]),
    ...(worst === null ? [] : [`Worst row: ${worst}`]),
    ...(diagnosis?.evidence ?? []),
  ];
}
