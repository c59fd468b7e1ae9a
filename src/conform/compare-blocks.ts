import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { ArrayFunction } from '../simd/index.js';
import { createBlockHasher, mismatchingBlocks, type BlockProgress } from './silicon-hash.js';
import { fingerprintTargets } from './targets.js';

/** Blocks of one function to compare with its captured fingerprint. */
export interface BlockTask {
  readonly instruction: string;
  readonly expected: Uint8Array;
  readonly blocks: readonly number[];
}

/** A share of a task: few enough blocks (0.1 s) for an even load and a lively progress line. */
interface BlockShare extends BlockTask {
  /** Which of the tasks it is a share of. */
  readonly task: number;
}

const blocksPerShare = 16;

function shares(tasks: readonly BlockTask[]): BlockShare[] {
  return tasks.flatMap(({ blocks, ...rest }, task) =>
    Array.from({ length: Math.ceil(blocks.length / blocksPerShare) }, (_, i) => ({
      ...rest,
      task,
      blocks: blocks.slice(i * blocksPerShare, (i + 1) * blocksPerShare),
    })),
  );
}

/** The known function's model; callers have checked the name. */
function createModel(instruction: string): ArrayFunction {
  const target = fingerprintTargets.find((known) => known.instruction === instruction);
  if (target === undefined) throw new Error(`unknown instruction ${instruction}`);
  return target.createModel();
}

/** Compares shares one after another and keeps the models made for them. */
export function createShareComparer(): (share: BlockTask) => number[] {
  const hash = createBlockHasher();
  const models = new Map<string, ArrayFunction>();
  return ({ instruction, expected, blocks }) => {
    const model = models.get(instruction) ?? createModel(instruction);
    models.set(instruction, model);
    return mismatchingBlocks(model, { expected, blocks }, hash);
  };
}

/**
 * Compares every share and hands its mismatching blocks to `settle`, in no particular order. The work
 * is shared among `threads` threads, this one for a single thread.
 */
export async function compareShares<Share extends BlockTask>(
  work: readonly Share[],
  threads: number,
  settle: (share: Share, mismatching: readonly number[]) => void,
): Promise<void> {
  if (work.length === 0) return;
  if (threads === 1) {
    const compare = createShareComparer();
    for (const share of work) {
      // Long work would keep signals waiting to the end.
      await new Promise((resolve) => setImmediate(resolve));
      settle(share, compare(share));
    }
    return;
  }
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./block-worker.js', import.meta.url)),
    name: 'compareShare',
    minThreads: Math.min(threads, work.length),
    maxThreads: threads,
  });
  const compare = async (share: Share): Promise<void> => {
    const { instruction, expected, blocks } = share;
    settle(share, (await pool.run({ instruction, expected, blocks })) as number[]);
  };
  try {
    await Promise.all(work.map(compare));
  } finally {
    await pool.destroy();
  }
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
  await compareShares(shares(tasks), threads, (share, found) => {
    mismatching[share.task].push(...found);
    done += share.blocks.length;
    onProgress(done, total);
  });
  return mismatching.map((blocks) => blocks.sort((a, b) => a - b));
}
