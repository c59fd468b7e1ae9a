import type { Finding } from '../../machine/index.js';

/** The findings of clusters. */
export interface ListedFindings {
  /** With the number of the cluster in whose run they were found; of each kind the first 1,000. */
  readonly findings: readonly (Finding & { readonly cluster: number })[];
  /** How many more there are. */
  readonly unlisted: number;
}

/** Findings that are kept of a kind. */
const mostOfKind = 1000;

/** Gathers the findings of clusters; a grid of millions of them may have as many. */
export function createFindingList() {
  const findings: ListedFindings['findings'][number][] = [];
  const ofKind = new Map<Finding['kind'], number>();
  let unlisted = 0;
  return {
    add: (some: readonly Finding[], cluster: number): void => {
      for (const finding of some) {
        const number = (ofKind.get(finding.kind) ?? 0) + 1;
        ofKind.set(finding.kind, number);
        if (number > mostOfKind) unlisted++;
        else findings.push({ ...finding, cluster });
      }
    },
    list: (): ListedFindings => ({ findings, unlisted }),
  };
}
