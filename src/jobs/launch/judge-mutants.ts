import { findingWeight } from '../../machine/index.js';
import type { JudgedMutant } from '../../ptx/mutants/index.js';
import { RequestError } from '../../request-error.js';
import { secondsSince } from '../audit/index.js';
import { startThreadPool } from '../parts/helper-thread.js';
import { openMutants } from './launch-judge.js';
import type { RunRequest, RunResult } from './run-launch-file.js';

/** Selection of the mutants to judge, and the number of threads. */
export interface MutantsRequest {
  /** The most mutants to judge, evenly spread over all; default: all. */
  readonly most?: number | undefined;
  readonly threads: number;
}

/** The results of the mutants of a launch file's kernel. */
export interface MutantResults {
  /** Number of mutants, and of the instructions that they change. */
  readonly mutants: number;
  readonly instructions: number;
  /** The judged mutants, in the order of the program. */
  readonly judged: readonly JudgedMutant[];
  /**
   * Number of findings of the kernel itself, without hints: findings of the same kind at the same lines
   * do not count for a mutant.
   */
  readonly ownFindings: number;
  readonly seconds: number;
}

/** Evenly spread numbers below `count`, at most `most`; all of them if there are no more. */
function spread(count: number, most: number): readonly number[] {
  const chosen = Math.min(count, most);
  return Array.from({ length: chosen }, (_, i) => Math.floor((i * count) / chosen));
}

/** Number of mutants that are worth a thread: each thread runs the kernel itself first. */
const mutantsPerThread = 8;

/**
 * Judges the mutants of what a launch file starts, after the kernel itself has run.
 *
 * @param progress called with the share of the mutants that is judged
 * @throws RequestError for a kernel that does not come to its end, and for a run without race detection
 */
export async function judgeMutants(
  { run, request, findings }: Pick<RunResult, 'run' | 'request' | 'findings'>,
  { most = Infinity, threads }: MutantsRequest,
  progress: (share: number) => void = () => undefined,
): Promise<MutantResults> {
  const start = performance.now();
  if (!run.isComplete)
    throw new RequestError(
      `${request.path}: the kernel itself does not come to its end, so that its mutants would say nothing; run it without --mutants`,
    );
  const opened = await openMutants(request);
  const { mutants } = opened;
  const numbers = spread(mutants.length, most);
  const judged: JudgedMutant[] = [];
  const done = (count: number) => progress(count / numbers.length);
  const used = Math.min(threads, Math.floor(numbers.length / mutantsPerThread));
  if (used < 2) {
    const { judge } = opened.start();
    for (const number of numbers) {
      judged.push(judge(mutants[number]));
      done(judged.length);
    }
  } else judged.push(...(await judgeOnThreads(request, numbers, used, done)));
  return {
    mutants: mutants.length,
    instructions: new Set(mutants.map(({ line, mnemonic }) => `${line} ${mnemonic}`)).size,
    judged,
    ownFindings: findings.filter(({ kind }) => findingWeight(kind) !== 'hint').length,
    seconds: secondsSince(start),
  };
}

async function judgeOnThreads(
  request: RunRequest,
  numbers: readonly number[],
  threads: number,
  done: (count: number) => void,
): Promise<readonly JudgedMutant[]> {
  const worker = new URL('./mutant-worker.js', import.meta.url);
  const pool = startThreadPool<number, JudgedMutant>(threads, 'judgeMutant', request, worker);
  try {
    const judged: JudgedMutant[] = [];
    await pool.run(numbers, (one) => judged.push(one), done);
    return judged;
  } finally {
    await pool.close();
  }
}
