/** What a kernel gives at a value, compared with what it gave at the base. */
export type Outcome<Found> =
  | { readonly kind: 'same' }
  /** The kernel does not take the value. */
  | { readonly kind: 'declined'; readonly reason: string }
  | { readonly kind: 'changed'; readonly found: Found };

/** A value at which something changed. */
interface Changed<Found> {
  readonly to: number;
  readonly found: Found;
}

/** What a search found among the values of a dimension. */
export interface SearchResult<Found> {
  /** The values that the kernel ran at, ascending. */
  readonly tried: readonly number[];
  /** The values that it did not take, ascending. */
  readonly declined: readonly number[];
  /** The last reason that it gave for one; null where it took all. */
  readonly reason: string | null;
  /** A value at which nothing changed, null for none before it; the next that the kernel takes; and what changed there. */
  readonly change: (Changed<Found> & { readonly from: number | null }) | null;
}

/** Values that are each tried, before there are gaps. */
const eachOf = 16;

/**
 * The values that are tried first: the smallest ones, then those at and behind each power of two, where kernels begin
 * another block, and the last.
 * @param values ascending
 */
export function probesOf(values: readonly number[]): readonly number[] {
  const last = values.length - 1;
  const beyond: number[] = [];
  for (let power = 1; power <= values[last]; power *= 2) {
    const at = values.findIndex((value) => value >= power);
    beyond.push(at, at + 1);
  }
  const places = new Set([...values.keys()].slice(0, eachOf));
  for (const at of [...beyond, last]) if (at <= last) places.add(at);
  return [...places].sort((a, b) => a - b).map((at) => values[at]);
}

/**
 * The smallest change that a search finds: it goes up the probes to the first value at which something changed, then
 * bisects between it and the last at which nothing did, so that both have been run. A change that is gone again before
 * the next probe is not found: `probes` of all values leave none out.
 * @param values ascending, the base first; the first that the kernel takes is the base, which `outcomeAt` is asked first
 */
export async function findSmallestChange<Found>(
  values: readonly number[],
  probes: readonly number[],
  outcomeAt: (value: number) => Promise<Outcome<Found>>,
): Promise<SearchResult<Found>> {
  const [tried, declined]: [number[], number[]] = [[], []];
  const state: { reason: string | null; from: number | null; to: Changed<Found> | null } = {
    reason: null,
    from: null,
    to: null,
  };
  const tryValue = async (value: number): Promise<void> => {
    const outcome = await outcomeAt(value);
    (outcome.kind === 'declined' ? declined : tried).push(value);
    if (outcome.kind === 'declined') state.reason = outcome.reason;
    if (outcome.kind === 'same') state.from = value;
    if (outcome.kind === 'changed') state.to = { to: value, found: outcome.found };
  };
  for (const value of probes) {
    if (state.to !== null) break;
    await tryValue(value);
  }
  const between = (): number[] => {
    const { from, to } = state;
    if (from === null || to === null) return [];
    return values.filter((value) => value > from && value < to.to && !declined.includes(value));
  };
  for (let open = between(); open.length > 0; open = between())
    await tryValue(open[Math.floor(open.length / 2)]);
  const ascending = (list: number[]) => list.sort((a, b) => a - b);
  const { reason, from, to } = state;
  return {
    tried: ascending(tried),
    declined: ascending(declined),
    reason,
    change: to && { from, ...to },
  };
}
