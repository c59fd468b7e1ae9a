import { randomOrder } from '../../machine/index.js';
import { RequestError } from '../../request-error.js';

/** The numbers of a grid's clusters in the order in which they start, from their number. */
type ClusterStarts = (clusters: number) => readonly number[];

const ascending: ClusterStarts = (clusters) => Array.from({ length: clusters }, (_, i) => i);

const mostSeed = 2 ** 32 - 1;

/**
 * The order of a name: `ascending`, `descending` or `random:<seed>`.
 * @throws RequestError for any other name, and for a bad seed
 */
export function findStarts(text: string): ClusterStarts {
  if (text === 'ascending') return ascending;
  if (text === 'descending') return (clusters) => [...ascending(clusters)].reverse();
  const [, seed] = /^random:(\d+)$/.exec(text) ?? [];
  if (seed !== undefined && Number(seed) <= mostSeed)
    return (clusters) => randomOrder(clusters, Number(seed));
  throw new RequestError(
    `--starts is ${JSON.stringify(text)}; give ascending, descending or random:<seed>, a whole number below 2^32`,
  );
}
