import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { lazily } from '../reuse.js';
import type { ArrayFunction } from '../simd/index.js';
import type { CapturedTable, ResultPairs } from './capture.js';
import { type BlockProgress, createBlockHasher, mismatchingBlocks } from './silicon-hash.js';
import { fingerprintTargets } from './targets.js';

/** An input with the silicon's result and the model's, as bit patterns. */
export interface ResultMismatch {
  readonly input: number;
  readonly silicon: number;
  readonly model: number;
}

/** The outcome of comparing single results. */
export interface ResultComparison {
  readonly checked: number;
  readonly mismatching: number;
  /** The first mismatch in the captured order. */
  readonly first: ResultMismatch | null;
}

const nan = 0x7fffffff;

/** Every NaN counts as 0x7fffffff, as in the fingerprint. */
function canonical(bits: number): number {
  return (bits & 0x7fffffff) > 0x7f800000 ? nan : bits;
}

function compare(
  inputs: (index: number) => number,
  silicon: Uint32Array,
  model: (index: number) => number,
): ResultComparison {
  let mismatching = 0;
  let first: ResultMismatch | null = null;
  silicon.forEach((expected, i) => {
    if (model(i) === expected) return;
    mismatching++;
    first ??= { input: inputs(i), silicon: expected, model: model(i) };
  });
  return { checked: silicon.length, mismatching, first };
}

/** Compares the model with every captured pair; the model is made only if there are some. */
export function comparePairs(
  createModel: () => ArrayFunction,
  pairs: readonly ResultPairs[],
): ResultComparison {
  const model = lazily(createModel);
  const comparisons = pairs.map(({ inputs, results }) => {
    const modelled = new Uint32Array(inputs.length);
    model()(inputs, modelled);
    return compare(
      (i) => inputs[i],
      results.map(canonical),
      (i) => canonical(modelled[i]),
    );
  });
  return {
    checked: comparisons.reduce((sum, { checked }) => sum + checked, 0),
    mismatching: comparisons.reduce((sum, { mismatching }) => sum + mismatching, 0),
    first: comparisons.find(({ first }) => first !== null)?.first ?? null,
  };
}

/** Compares the model with every input of a table. */
export function compareTable({ target, results }: CapturedTable): ResultComparison {
  return compare(
    (i) => i,
    results,
    (i) => target.evaluate(i),
  );
}

/** Blocks of one function to compare with its captured fingerprint. */
export interface BlockTask {
  readonly instruction: string;
  readonly expected: Uint8Array;
  readonly blocks: readonly number[];
}

/** A share of a task: few enough blocks (0.1 s) for an even load and a lively progress line. */
interface BlockShare extends BlockTask {
  /** Index of the task among all tasks. */
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

/** The model of a known function; callers have checked the name. */
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
