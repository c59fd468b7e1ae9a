import type { Sequence } from '../../../src/problem/index.js';
import { sequencesOf } from '../features/feature-request.js';
import type { PlainProblem } from '../plain-problem.js';
import { normalValues } from '../values.js';
import type { Regime } from './regime.js';

/** Normal scores, of standard deviation 1. */
const draw: Regime['draw'] = ({ sizes, random }) => normalValues(sizes, random);

/** Whether keys are in pages, and a sequence with queries has as many keys as a test asks for. */
function someLength(
  { features, form }: PlainProblem,
  test: (keys: number, pageSize: number) => boolean,
): boolean {
  const pages = form?.keys;
  if (pages?.kind !== 'paged') return false;
  const isOne = ({ queries, keys }: Sequence) => queries > 0 && test(keys, pages.pageSize);
  return (features?.sequences ?? []).some(isOne);
}

/** Keys that fill half of the last block. */
const halfOf = (blockKeys: number): number => Math.ceil(blockKeys / 2);

/** Regimes of keys in pages, by how their sequences end. */
export const pageRegimes = {
  'partly-filled-pages': {
    description: 'pages: a sequence whose last page is not full',
    provokes: 'lengths that are counted in pages, and slots behind the last key that are read',
    features: ['paged'],
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw,
    holds: (plain) => someLength(plain, (keys, pageSize) => keys % pageSize !== 0),
  },
  'half-filled-paged-tiles': {
    description: 'pages: a sequence that fills half of its last block, 64 keys beyond those of 128',
    provokes: 'a last block of which some pages are missing, or are those of another sequence',
    features: ['paged'],
    sizes: ({ blockKeys }) => ({ queries: { min: 1 }, keys: { min: halfOf(blockKeys) } }),
    tiled: true,
    draw,
    drawFeatures: ({ sizes: { queries, keys }, tiling: { blockKeys }, random }) => {
      const half = halfOf(blockKeys);
      const most = Math.floor((keys - half) / blockKeys);
      const length = half + random.integer(0, most) * blockKeys;
      const first = random.integer(0, keys - length);
      const begin = random.integer(0, queries - 1);
      const end = random.integer(begin + 1, queries);
      return { sequences: sequencesOf([begin, end, queries], [first, first + length, keys]) };
    },
    holds: (plain, { blockKeys }) =>
      someLength(plain, (keys) => keys % blockKeys === halfOf(blockKeys) % blockKeys),
  },
} satisfies Record<string, Regime>;
