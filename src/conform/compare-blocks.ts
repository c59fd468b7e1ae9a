import { Worker } from 'node:worker_threads';
import {
  conformConversion,
  conversionTargets,
  type BlockProgress,
  type ConversionTarget,
} from '../formats/index.js';

/** Blocks of one conversion to compare with its captured fingerprint. */
export interface BlockTask {
  readonly instruction: string;
  readonly expected: Uint8Array;
  readonly blocks: readonly number[];
}

/** A share of a task: few enough blocks (0.1 s) for an even load and a lively progress line. */
export interface BlockShare extends BlockTask {
  /** Which of the tasks it is a share of. */
  readonly task: number;
}

const blocksPerShare = 8;

function shares(tasks: readonly BlockTask[]): BlockShare[] {
  return tasks.flatMap(({ blocks, ...rest }, task) =>
    Array.from({ length: Math.ceil(blocks.length / blocksPerShare) }, (_, i) => ({
      ...rest,
      task,
      blocks: blocks.slice(i * blocksPerShare, (i + 1) * blocksPerShare),
    })),
  );
}

/** The known conversion of that name; callers have checked the name. */
function targetOf(instruction: string): ConversionTarget {
  const target = conversionTargets.find((known) => known.instruction === instruction);
  if (target === undefined) throw new Error(`unknown instruction ${instruction}`);
  return target;
}

/** The mismatching blocks of one share; what a worker thread does. */
export function compareShare({ instruction, expected, blocks }: BlockTask): number[] {
  return conformConversion(targetOf(instruction), { expected, blocks });
}

/** Hands share after share to one worker until none is left. */
function drain(
  worker: Worker,
  queue: Iterator<BlockShare>,
  settle: (share: BlockShare, mismatching: number[]) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let current: BlockShare;
    const next = (): void => {
      const { value, done } = queue.next();
      if (done === true) return resolve();
      current = value;
      worker.postMessage(current);
    };
    worker.on('message', (mismatching: number[]) => {
      settle(current, mismatching);
      next();
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a worker thread stopped with status ${code}`)));
    next();
  });
}

/**
 * The mismatching blocks of each task, ascending. The work is shared among `threads` threads, this
 * one for a single thread; the result does not depend on their number.
 */
export async function compareBlocks(
  tasks: readonly BlockTask[],
  threads: number,
  onProgress: BlockProgress = () => {},
): Promise<number[][]> {
  const mismatching: number[][] = tasks.map(() => []);
  const total = tasks.reduce((sum, { blocks }) => sum + blocks.length, 0);
  let done = 0;
  const settle = (share: BlockShare, found: number[]): void => {
    mismatching[share.task].push(...found);
    done += share.blocks.length;
    onProgress(done, total);
  };
  const work = shares(tasks);
  if (threads === 1) {
    for (const share of work) settle(share, compareShare(share));
  } else {
    const workers = Array.from(
      { length: Math.min(threads, work.length) },
      () => new Worker(new URL('./block-worker.js', import.meta.url)),
    );
    const queue = work.values();
    try {
      await Promise.all(workers.map((worker) => drain(worker, queue, settle)));
    } finally {
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
  }
  return mismatching.map((blocks) => blocks.sort((a, b) => a - b));
}
