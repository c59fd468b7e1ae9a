import type { LawResult } from './law-progress.js';

/** A law that was tried on nothing, and why. */
type Untried = Pick<LawResult, 'id' | 'status' | 'runs' | 'skipped'>;

/**
 * What to say of a check in which no law was tried on anything, in one line: why not, by the law that
 * tells most, and what to do.
 */
export function describeNothingTried({ laws }: { readonly laws: readonly Untried[] }): string {
  const untried = laws.filter(({ status }) => status === 'untried');
  const [first, ...rest] = (untried.length > 0 ? untried : [...laws]).sort(
    (a, b) => Number(b.runs > 0) - Number(a.runs > 0),
  );
  const example = first === undefined ? 'no law is left' : `${first.id}: ${first.skipped}`;
  const more = rest.length > 0 ? `; and ${rest.length} more` : '';
  return `nothing was checked: no law was tried on any problem (${example}${more}); give promises that fit the kernel (formats, dims, masks), more laws, or more time`;
}
