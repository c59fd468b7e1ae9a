import { type Finding, findingGroup } from '../../machine/index.js';

/** The findings of clusters. */
export interface ListedFindings {
  /** With the number of the cluster in whose run they were found; of a kind the first 1,000 at the same places of the program. */
  readonly findings: readonly (Finding & { readonly cluster: number })[];
  /** Number of further findings. */
  readonly unlisted: number;
}

/** Findings of a group that are kept. */
const mostAlike = 1000;

/** Gathers the findings of clusters; a grid of millions of them may have as many. */
export function createFindingList() {
  const findings: ListedFindings['findings'][number][] = [];
  const kept = new Map<string, number>();
  let unlisted = 0;
  return {
    add: (some: readonly Finding[], cluster: number): void => {
      for (const finding of some) {
        const group = findingGroup(finding);
        const number = (kept.get(group) ?? 0) + 1;
        kept.set(group, number);
        if (number > mostAlike) unlisted++;
        else findings.push({ ...finding, cluster });
      }
    },
    list: (): ListedFindings => ({ findings, unlisted }),
  };
}
