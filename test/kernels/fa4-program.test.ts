import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Fa4Configuration } from '../../kernels/fa4/index.js';
import {
  findMachineMutant,
  prepareFa4Program,
  warpRoles,
} from '../../kernels/fa4/program/index.js';
import { formats, patternsOf } from '../../src/formats/index.js';
import { lazily } from '../../src/reuse.js';
import {
  adversarialSchedulers,
  delayingScheduler,
  inOrderScheduler,
  randomScheduler,
  timedScheduler,
  type Scheduler,
} from '../../src/machine/index.js';
import { casePaths, readCase } from '../audit/captured-cases.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { createMutantRunner, smallConfigurations } from './fa4-program-mutant-runs.js';
import { forwardBits, randomProblem, runProgram } from './fa4-program-runs.js';

const inTurn = turns(import.meta.url);

/** Problems and schedules of each; raise them for a campaign. */
const problems = Number(process.env['MACHINE_PROBLEMS'] ?? 2);
const schedules = Number(process.env['MACHINE_SCHEDULES'] ?? 3);
const time = 86_400_000;

/** A problem of any kind that the program runs, small: most have one or two tiles. */
const settings = fc.record({
  dims: fc.constantFrom<[number, number]>([64, 64], [64, 64], [128, 128], [192, 128]),
  format: fc.constantFrom('bf16', 'fp16', 'e4m3', 'e5m2'),
  ctas: fc.constantFrom<1 | 2>(1, 2),
  clusters: fc.constantFrom(1, 2),
  heads: fc.constantFrom<[number, number]>([1, 1], [2, 2], [2, 1], [3, 1]),
  queries: fc.oneof(fc.integer({ min: 1, max: 140 }), fc.integer({ min: 120, max: 260 })),
  keys: fc.oneof(fc.integer({ min: 1, max: 140 }), fc.integer({ min: 120, max: 400 })),
  causal: fc.boolean(),
  window: fc.oneof(
    { weight: 2, arbitrary: fc.constant(null) },
    fc.record({
      left: fc.integer({ min: -1, max: 200 }),
      right: fc.integer({ min: -1, max: 200 }),
    }),
  ),
  rescaleThreshold: fc.constantFrom(0, 8),
  spread: fc.constantFrom(0.1, 1, 8, 64),
  isaFences: fc.boolean(),
  seed: fc.nat(),
});

type Drawn = typeof settings extends fc.Arbitrary<infer Value> ? Value : never;
type Setting = Omit<Drawn, 'spread'> & { readonly spread: number };

/** Some of the schedules there are: in order and a random one first, with the tracker of orders. */
function scheduleOf(index: number, start: number): () => Scheduler {
  if (index === 0) return inOrderScheduler;
  const random = () => randomScheduler(start + index);
  if (index === 1) return random;
  const kinds: (() => Scheduler)[] = [
    random,
    () => {
      const all = adversarialSchedulers(warpRoles.length);
      return all[(start + index) % all.length];
    },
    timedScheduler,
    () => delayingScheduler([start % 97, (start + index) % 1009, 31 * index]),
  ];
  return kinds[(start + index) % kinds.length];
}

function check(
  { rescaleThreshold, heads: [heads, kvHeads], ...setting }: Setting,
  count = schedules,
): void {
  const { ctas, clusters, isaFences, seed: start } = setting;
  const problem = randomProblem({ ...setting, heads, kvHeads });
  const configuration: Partial<Fa4Configuration> = { rescaleThreshold };
  const expected = forwardBits(problem, configuration);
  let scheduler = inOrderScheduler;
  const prepare = (races: boolean) =>
    prepareFa4Program(problem, configuration, {
      ctas,
      clusters,
      isaFences,
      races,
      scheduler: () => scheduler(),
    });
  const [tracked, plain] = [lazily(() => prepare(true)), lazily(() => prepare(false))];
  for (let index = 0; index < count; index++) {
    scheduler = scheduleOf(index, start);
    const outcome = runProgram(index < 2 ? tracked() : plain(), expected);
    expect(outcome, scheduler().name).toMatchObject({
      findings: [],
      isComplete: true,
      differences: 0,
    });
  }
}

describe("FlashAttention-4's warps on the machine", () => {
  inTurn("give the forward's bits in every schedule", { timeout: time }, () => {
    fc.assert(
      fc.property(settings, (setting) => check(setting)),
      { numRuns: problems },
    );
  });

  inTurn.each<[string, Partial<Setting>]>([
    ['one query and one key', { queries: 1, keys: 1 }],
    ['rows without keys', { queries: 200, keys: 60, causal: true }],
    ['tiles without keys', { queries: 290, keys: 20, causal: true, ctas: 2 }],
    ['a window that hides everything', { queries: 130, keys: 5, window: { left: 0, right: 0 } }],
    ['fp8 in a pair', { format: 'e4m3', dims: [128, 128], ctas: 2, queries: 300, keys: 200 }],
    ['fp8 with dims 192 and 128', { format: 'e5m2', dims: [192, 128], queries: 140, keys: 300 }],
  ])('give them for %s', (_, changes) => {
    const setting: Setting = {
      dims: [64, 64],
      format: 'bf16',
      ctas: 1,
      clusters: 1,
      heads: [1, 1],
      queries: 129,
      keys: 200,
      causal: false,
      window: null,
      rescaleThreshold: 8,
      spread: 4,
      isaFences: false,
      seed: 1,
      ...changes,
    };
    check(setting, 2);
  });
});

describe('the smallest pair of CTAs', () => {
  const configuration = smallConfigurations.find(({ options }) => options.ctas === 2)!;
  // Neither CTA goes on before both have tensor memory, however late the warp that allocates is.
  const mmaWarp = warpRoles.indexOf('MMA');
  const names = [
    ...[`warp ${mmaWarp} last`, `warp ${mmaWarp} first`, 'CTA 1 first', 'all operations late'],
  ];
  const runner = lazily(() => createMutantRunner(configuration));

  inTurn.each(names)("gives the forward's bits with %s", (name) => {
    const scheduler = () =>
      adversarialSchedulers(warpRoles.length).find((candidate) => candidate.name === name)!;
    expect(scheduler()).toBeDefined();
    expect(runner().run(null, { scheduler, races: name.startsWith('warp ') })).toMatchObject({
      findings: [],
      isComplete: true,
      differences: 0,
    });
  });
});

describe('a race that values show in some schedules alone', () => {
  const mutant = findMachineMutant('remove: P full, last quarter: MMA waits')!;
  const runner = createMutantRunner({
    name: '1 CTA, 64, one stage',
    problem: randomProblem({ heads: 1, queries: 128, keys: 128, dims: [64, 64] }),
    options: { ctas: 1, clusters: 1 },
  });
  const isRight = (delays: readonly number[]): boolean => {
    const scheduler = () => delayingScheduler(delays);
    const { isComplete, differences } = runner.run(mutant, { scheduler, races: false });
    return isComplete && differences === 0;
  };

  /** fast-check drops a list's first numbers, and each number means another moment without those before. */
  function withoutNeedless(delays: readonly number[]): readonly number[] {
    const fewer = delays
      .map((delay) => delays.filter((other) => other !== delay))
      .find((shorter) => !isRight(shorter));
    return fewer === undefined ? delays : withoutNeedless(fewer);
  }

  inTurn('shrinks to the few delays that matter', { timeout: 300_000 }, () => {
    const { steps } = runner.run(null, { races: false });
    const lists = fc.uniqueArray(fc.integer({ min: 0, max: steps }), { maxLength: 6 });
    const details = fc.check(fc.property(lists, isRight), { numRuns: 1000 });
    expect(details.counterexample).not.toBe(null);
    const delays = withoutNeedless(details.counterexample![0]);
    console.log(`${mutant.id}: wrong by delays at ${delays.join(', ')}`);
    expect(isRight([])).toBe(true);
    expect(isRight(delays)).toBe(false);
    for (const delay of delays)
      expect(isRight(delays.filter((other) => other !== delay))).toBe(true);
    // The tracker needs no such luck.
    const kinds = runner.run(mutant).findings.map(({ kind }) => kind);
    expect(kinds).toContain('race');
  });
});

interface CapturedSettings {
  readonly settings: Readonly<Record<string, number>>;
}

const file = new URL('../../fixtures/silicon/sm_90/fa4-forward.json', import.meta.url);
const captured = JSON.parse(readFileSync(file, 'utf8')) as Record<string, CapturedSettings>;

// TEST_SEED draws a third of them; kernels/fa4/forward-silicon.test.ts tries the forward on all.
describe.each(sampled(casePaths, 4).map((path) => [basename(path), path]))('%s', (name, path) => {
  inTurn('comes out as an H200 computed it', async () => {
    const { problem, outputs } = await readCase(path);
    const { settings: chosen } = captured[name.slice(0, 2)];
    const configuration: Partial<Fa4Configuration> = {
      architecture: 'sm_90',
      exp2: {
        frequency: chosen['exp2.frequency'],
        reserve: chosen['exp2.reserve'],
        startFragment: chosen['exp2.startFragment'],
        degree: 3,
      },
      rescaleThreshold: chosen['rescale.threshold'],
    };
    const { out, lse } = outputs.fa4;
    const outcome = runProgram(prepareFa4Program(problem, configuration, { races: false }), {
      out: patternsOf(out.data, formats[out.format]) as Uint16Array,
      lse: patternsOf(lse!.data, formats[lse!.format]) as Uint32Array,
    });
    expect(outcome).toMatchObject({ findings: [], isComplete: true, differences: 0 });
  });
});
