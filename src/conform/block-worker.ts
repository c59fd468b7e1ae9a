import { parentPort } from 'node:worker_threads';
import { compareShare, type BlockTask } from './compare-blocks.js';

/** The worker thread of compare-blocks.ts: answers each share with its mismatching blocks. */
parentPort?.on('message', (share: BlockTask) => {
  parentPort?.postMessage(compareShare(share));
});
