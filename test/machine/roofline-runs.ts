import type { Fa4Configuration } from '../../kernels/fa4/configuration.js';
import { prepareFa4Program, type ProgramClusterRun } from '../../kernels/index.js';
import { sumOfCounters, timedScheduler, type CtaCounters } from '../../src/machine/index.js';
import { differenceOfCounters } from './measured-work.js';
import type { Problem } from '../../src/problem/index.js';
import { boxMullerNumbers, filledProblem, uniformNumbers } from '../setup/problems.js';

/** A problem's dimensions and what is not chosen for it. */
export interface RunSetting {
  readonly queries: number;
  readonly keys: number;
  readonly qkDim: number;
  readonly vDim: number;
  readonly ctas?: 1 | 2;
  readonly causal?: boolean;
  readonly format?: 'bf16' | 'e4m3';
  readonly overrides?: Partial<Fa4Configuration>;
}

/** One head with normal inputs. */
export function normalProblem(setting: RunSetting): Problem {
  const { queries, keys, qkDim, vDim, causal = false, format = 'bf16' } = setting;
  const frame = { batch: null, queries, keys, dim: qkDim, vDim, format };
  return filledProblem(frame, boxMullerNumbers(uniformNumbers(1)), { causal });
}

/** Runs all clusters of the program; the counters of every CTA. */
export function countersOf(problem: Problem, setting: Partial<RunSetting>): CtaCounters[] {
  const program = prepareFa4Program(problem, setting.overrides ?? {}, {
    ...(setting.ctas === undefined ? {} : { ctas: setting.ctas }),
    races: false,
  });
  const counters: CtaCounters[] = [];
  for (let cluster = 0; cluster < program.clusters; cluster++) {
    const run = program.run(cluster);
    if (!run.isComplete || run.findings.length > 0)
      throw new Error(`cluster ${cluster}: ${run.findings.map(({ message }) => message).join()}`);
    counters.push(...run.counters);
  }
  return counters;
}

/** What all CTAs have done on normal inputs. */
export function totalOf(setting: RunSetting): CtaCounters {
  return sumOfCounters(countersOf(normalProblem(setting), setting));
}

/** The work of one CTA for one more block of 128 keys, from runs with 3 and 4 blocks. */
export function blockWork(setting: Omit<RunSetting, 'keys'>): CtaCounters {
  const of = (keys: number): CtaCounters => {
    const full = { ...setting, keys };
    return countersOf(normalProblem(full), full)[0];
  };
  return differenceOfCounters(of(512), of(384));
}

/** The first cluster in a timed schedule. */
export function timedRun(setting: RunSetting): ProgramClusterRun {
  return prepareFa4Program(normalProblem(setting), setting.overrides ?? {}, {
    ...(setting.ctas === undefined ? {} : { ctas: setting.ctas }),
    races: false,
    clusters: 1,
    scheduler: () => timedScheduler(),
  }).run(0);
}

/** Clocks that one more block takes in a timed schedule: the mean of four, after eight others. */
export function timedBlock(setting: Omit<RunSetting, 'keys'>): number {
  const [long, short] = [1536, 1024].map((keys) => timedRun({ ...setting, keys }).clocks);
  return (long - short) / 4;
}

/** No polynomial. */
export const hardwareOnly: Fa4Configuration['exp2'] = {
  frequency: 0,
  reserve: 4,
  startFragment: 0,
  degree: 3,
};
