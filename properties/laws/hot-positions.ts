import type { RandomValues } from '../problems/index.js';
import { indices } from './transform-problem.js';

/** Which blocks of keys may hold a hot key, of all. */
type BlockRule = (block: number, blocks: number, chosen: number) => boolean;

const rules: readonly BlockRule[] = [
  () => true,
  (block) => block > 0,
  (block, blocks) => block < blocks - 1,
  (block, _, chosen) => block === chosen,
];

/**
 * Keys that may be hot, in random order: all of them, those of all blocks but the first or but the
 * last, or those of one block; all, where a rule leaves none.
 */
export function hotPositions(keys: number, blockKeys: number, random: RandomValues): number[] {
  const blocks = Math.ceil(keys / blockKeys);
  const rule = rules[random.integer(0, rules.length - 1)];
  const chosen = random.integer(0, Math.max(blocks - 1, 0));
  const fitting = indices(keys).filter((key) => rule(Math.floor(key / blockKeys), blocks, chosen));
  const positions = fitting.length > 0 ? fitting : indices(keys);
  for (let i = positions.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [positions[i], positions[j]] = [positions[j], positions[i]];
  }
  return positions;
}
