/** Members of reports that tell when, how long and in how many shards. */
const left: readonly string[] = ['created', 'seconds', 'shards'];

/**
 * The JSON text of a report without what may differ between two runs that found the same: times, and
 * the shards. All else stays to the byte, the order of members included.
 */
export function withoutTimes(json: string): string {
  const text = JSON.stringify(
    JSON.parse(json),
    (key, value: unknown) => (left.includes(key) ? undefined : value),
    2,
  );
  return text.replace(/( problems? in )[\d.e+-]+ s/, '$1… s');
}
