import { createShareComparer, type BlockTask } from './comparison.js';

const compare = createShareComparer();

/** What a worker thread of compare-blocks.ts does: the mismatching blocks of a share. */
export function compareShare(share: BlockTask): number[] {
  return compare(share);
}
