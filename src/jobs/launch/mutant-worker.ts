import { workerData } from 'piscina';
import { lazily } from '../../reuse.js';
import type { JudgedMutant } from '../../ptx/mutants/index.js';
import { RequestError } from '../../request-error.js';
import type { ThreadAnswer } from '../audit/index.js';
import { openMutants } from './launch-judge.js';
import type { RunRequest } from './run-launch-file.js';

const judge = lazily(async () => {
  const { mutants, start } = await openMutants(workerData as RunRequest);
  return { mutants, ...start() };
});

/** The work of a worker thread of judge-mutants.ts: the mutant of a number. */
export async function judgeMutant(number: number): Promise<ThreadAnswer<JudgedMutant>> {
  try {
    const { mutants, judge: judgeOne } = await judge();
    return judgeOne(mutants[number]);
  } catch (error) {
    if (error instanceof RequestError) return { refusal: error.message };
    throw error;
  }
}
