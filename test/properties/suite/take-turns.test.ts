import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  checkKernel,
  modelPromises,
  planCheck,
  tryRound,
  type CheckOptions,
  type CheckResult,
  type KernelPromises,
  type RoundRunner,
} from '../../../properties/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const { kernel, promises: own } = modelPromises('fa4', new Map([['variant', 'causal-one-more']]));
const promises: KernelPromises = {
  ...own,
  formats: ['bf16'],
  sizes: { keys: { max: 4 }, queries: { max: 4 } },
};

/** Many at the same time, the later ones first as often as not. */
function jumbled(
  { laws }: CheckOptions,
  seed: number,
  lanes: number,
): RoundRunner & { most: number } {
  const plan = planCheck(promises, { laws });
  let underWay = 0;
  const runner = {
    lanes,
    most: 0,
    tryRound: async (...[law, round, shrinkSeconds]: Parameters<RoundRunner['tryRound']>) => {
      runner.most = Math.max(runner.most, ++underWay);
      await sleep((round * 7 + law.length * 3) % 5);
      const planned = plan.laws.find(({ id }) => id === law)!;
      const ofLaw = { planned, promises: plan.promises, seed };
      const result = await tryRound(ofLaw, round, kernel, shrinkSeconds);
      underWay--;
      return result;
    },
  };
  return runner;
}

function withoutTimes({ laws, ...result }: CheckResult) {
  return {
    ...result,
    seconds: 0,
    laws: laws.map((law) => ({
      ...law,
      seconds: 0,
      failure: law.failure && { ...law.failure, secondsUntil: 0 },
    })),
  };
}

describe('laws whose rounds are tried at the same time', () => {
  inTurn.each([
    ['several laws', ['repeated-keys', 'causal-is-window'], 2, 4],
    ['more lanes than laws', ['causal-is-window'], 4, 12],
  ] as const)('give what turns give, one after the other: %s', async (_, laws, lanes, runs) => {
    const options = { laws, runs, seed: 3 };
    const apart = jumbled(options, 3, lanes);
    const expected = await checkKernel(kernel, promises, options);
    const found = await checkKernel(kernel, promises, { ...options, apart });
    expect(apart.most).toBe(lanes);
    expect(expected.laws.some(({ failure }) => failure !== null)).toBe(true);
    expect(withoutTimes(found)).toEqual(withoutTimes(expected));
  });

  it('begin no more rounds when the time is up, and say so', async () => {
    const options = { laws: ['determinism'] as const, runs: 50, seed: 3, seconds: 1e-9 };
    const found = await checkKernel(kernel, promises, {
      ...options,
      apart: jumbled(options, 3, 3),
    });
    expect(found).toMatchObject({ outOfTime: true, runs: 0, pass: false });
  });
});
