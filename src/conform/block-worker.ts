import { createShareComparer, type BlockTask } from './comparison.js';

const compare = createShareComparer();

/** The work of a worker thread of compare-blocks.ts: finds the mismatching blocks of a share. */
export function compareShare(share: BlockTask): number[] {
  return compare(share);
}
