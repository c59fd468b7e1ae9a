import { type Finding, findingGroup } from '../../machine/index.js';

/** The findings of clusters. */
export interface ListedFindings {
  /**
   * Findings with the number of the cluster in whose run they were found; the first 1,000 of a kind at the same places
   * of the program.
   */
  readonly findings: readonly (Finding & { readonly cluster: number })[];
  /** Number of further findings. */
  readonly unlisted: number;
}

/** Maximum number of findings of a group that are kept. */
const mostAlike = 1000;

/** Collects the findings of clusters; a grid of millions of clusters may have as many. */
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
