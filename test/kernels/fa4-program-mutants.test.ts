import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  countedLoadSites,
  findMachineMutant,
  isaFenceSites,
  machineMutants,
  redundantMutants,
  synchronisingSites,
  warpRoles,
} from '../../kernels/fa4/program/index.js';
import { alignColumns } from '../../src/report/layout/table.js';
import { lazily } from '../../src/reuse.js';
import {
  adversarialSchedulers,
  explore,
  inOrderScheduler,
  randomScheduler,
  type Scheduler,
} from '../../src/machine/index.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import {
  createMutantRunner,
  largeConfigurations,
  overlapMutants,
  smallConfigurations,
  tinyConfigurations,
  type MutantConfiguration,
  type MutantRunner,
} from './fa4-program-mutant-runs.js';
import { sampled, scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

type Mutant = (typeof machineMutants)[number];

/**
 * What the campaign tries: nothing (a sample drawn by TEST_SEED then stands for all), `all`, `redundant`
 * (those mutants under every schedule with one delay), or the configurations whose names begin so.
 */
const campaign = process.env['MUTANTS'];
/** Random schedules of each mutant in the campaign, beside the one in order and the adversarial ones. */
const randomSchedules = Number(process.env['MUTANT_SCHEDULES'] ?? 50);

/** How many of each group: one in so many. */
const oneIn = 20;

const redundant: readonly string[] = redundantMutants.map(({ id }) => id);
/** A runner for each of the small configurations, made once for all tests. */
const smallRunners = lazily(() => smallConfigurations.map(createMutantRunner));

/**
 * The mutants that are not redundant, by what it takes to show them: the overlap of tiles, or the first
 * configuration that has what they change (pairs of CTAs, other dims).
 */
function mutantGroups(): Mutant[][] {
  const groups = new Map<string, Mutant[]>();
  for (const mutant of machineMutants) {
    if (redundant.includes(mutant.id)) continue;
    const first = smallRunners().find(({ applies }) => applies(mutant));
    const key = overlapMutants.includes(mutant.id) ? 'overlap' : first!.configuration.name;
    groups.set(key, [...(groups.get(key) ?? []), mutant]);
  }
  return [...groups.values()];
}

/** How many of a group are tried. */
function drawnOf(size: number): number {
  return Math.min(size, scaled(Math.ceil(size / oneIn)));
}

/** Some of them, each as likely as any other. */
function draw<T>(from: readonly T[], count: number, next: () => number): T[] {
  const left = [...from];
  return Array.from({ length: count }, () => left.splice(next() % left.length, 1)[0]);
}

/** The first configuration in whose run in order the tracker finds something; null if in none. */
function firstToFind(mutant: Mutant, unsound: string[]): string | null {
  for (const runner of smallRunners()) {
    if (!runner.applies(mutant)) continue;
    const { findings, isComplete, differences } = runner.run(mutant);
    const { name } = runner.configuration;
    if (findings.length > 0) return name;
    // Without findings every schedule has these bits, so they must be the forward's.
    if (!isComplete || differences > 0) unsound.push(`${mutant.id} (${name})`);
  }
  return null;
}

describe('the mutants of the program', () => {
  it('have ids of their own', () => {
    expect(new Set(machineMutants.map(({ id }) => id)).size).toBe(machineMutants.length);
  });

  inTurn('are about every instruction that orders others', () => {
    const known = new Set(
      [synchronisingSites, isaFenceSites, countedLoadSites].flatMap((table) =>
        Object.entries(table).flatMap(([op, sites]: [string, readonly string[]]) =>
          sites.map((site) => `${op}: ${site}`),
        ),
      ),
    );
    // What moves data, computes or allocates.
    const others =
      /^(registers|setmaxnreg|ld\.|st\.|tcgen05\.(ld|st|mma|alloc):|cp\.async\.bulk\.tensor\.global)/;
    const issued = new Set(smallRunners().flatMap((runner) => [...runner.issued]));
    const ordering = [...issued].filter((name) => !others.test(name));
    expect(ordering.sort()).toEqual([...known].sort());
  });

  inTurn('each change something in one of the small configurations', () => {
    const idle = machineMutants.filter(
      (mutant) => !smallRunners().some(({ applies }) => applies(mutant)),
    );
    expect(idle).toEqual([]);
  });
});

describe('one run in order with the tracker of orders', () => {
  inTurn.each(smallConfigurations.map(({ name }, i) => [name, i] as const))(
    'finds nothing in the program itself: %s',
    (_, i) => {
      expect(smallRunners()[i].run(null)).toMatchObject({
        findings: [],
        differences: 0,
        isComplete: true,
      });
    },
  );

  it.runIf(campaign !== 'all')('finds the mutants that are drawn', { timeout: 300_000 }, () => {
    const next = wordSource(testSeed);
    const unsound: string[] = [];
    for (const group of mutantGroups())
      for (const mutant of draw(group, drawnOf(group.length), next))
        expect(firstToFind(mutant, unsound), mutant.id).not.toBeNull();
    expect(unsound).toEqual([]);
  });

  it('does not need those that are redundant', () => {
    const next = wordSource(testSeed);
    for (const id of sampled(redundant, Math.ceil(redundant.length / 3))) {
      const mutant = findMachineMutant(id)!;
      const runners = smallRunners().filter(({ applies }) => applies(mutant));
      const [runner] = draw(runners, 1, next);
      expect(runner!.run(mutant), `${id} (${runner!.configuration.name})`).toMatchObject({
        findings: [],
        differences: 0,
        isComplete: true,
      });
    }
  });

  it.runIf(campaign === 'all')(
    'finds every mutant but those that are redundant',
    { timeout: 600_000 },
    () => {
      const unsound: string[] = [];
      const found = machineMutants.map(
        (mutant) => [mutant.id, firstToFind(mutant, unsound)] as const,
      );
      expect(found.flatMap(([id, by]) => (by === null ? [id] : [])).sort()).toEqual(
        [...redundant].sort(),
      );
      const overlap = smallConfigurations[1].name;
      expect(found.flatMap(([id, by]) => (by === overlap ? [id] : [])).sort()).toEqual(
        [...overlapMutants].sort(),
      );
      expect(unsound).toEqual([]);
    },
  );
});

/** What a mutant did in the campaign. */
interface CampaignRow {
  readonly configuration: string;
  readonly id: string;
  /** Kinds of findings of the run in order, and how many runs of those tried had findings. */
  readonly tracker: string;
  /** How many schedules it took until values alone showed it. */
  readonly values: string;
}

/** The schedules of a campaign, each made anew for every mutant. */
function schedules(): (() => Scheduler)[] {
  const adversarial = adversarialSchedulers(warpRoles.length).map(
    (_, i) => () => adversarialSchedulers(warpRoles.length)[i],
  );
  const random = Array.from({ length: randomSchedules }, (_, i) => () => randomScheduler(i + 1));
  return [inOrderScheduler, ...adversarial, ...random];
}

/** The number of the first schedule whose values, without the tracker, differ or never come. */
function tryValues(runner: MutantRunner, mutant: Mutant): string {
  const tried = schedules();
  for (const [i, scheduler] of tried.entries()) {
    const { isComplete, differences } = runner.run(mutant, { scheduler, races: false });
    const which = `${i + 1} of ${tried.length} (${scheduler().name})`;
    if (!isComplete) return `hangs: ${which}`;
    if (differences > 0) return `${differences} wrong: ${which}`;
  }
  return `right in ${tried.length}`;
}

function tryTracker(runner: MutantRunner, mutant: Mutant): string {
  const tried = [inOrderScheduler, () => randomScheduler(1), () => randomScheduler(2)];
  const runs = tried.map((scheduler) => runner.run(mutant, { scheduler }).findings);
  const kinds = [...new Set(runs[0].map(({ kind }) => kind))];
  const found = runs.filter((findings) => findings.length > 0).length;
  return `${kinds.join(', ') || 'nothing'}; ${found} of ${runs.length}`;
}

/** A row for each mutant of a configuration; they go to MUTANTS_FILE, if it is given, as they come. */
function runCampaign(configuration: MutantConfiguration): CampaignRow[] {
  const runner = createMutantRunner(configuration);
  const file = process.env['MUTANTS_FILE'];
  return machineMutants
    .filter((mutant) => runner.applies(mutant))
    .map((mutant) => {
      const row: CampaignRow = {
        configuration: configuration.name,
        id: mutant.id,
        tracker: tryTracker(runner, mutant),
        values: tryValues(runner, mutant),
      };
      if (file !== undefined) appendFileSync(file, JSON.stringify(row) + '\n');
      return row;
    });
}

describe.runIf(campaign !== undefined)('the campaign', () => {
  const configurations = [...largeConfigurations, ...smallConfigurations].filter(
    ({ name }) => campaign === 'all' || name.startsWith(campaign!),
  );
  inTurn.each(configurations)('$name', { timeout: 86_400_000 }, (configuration) => {
    const rows = runCampaign(configuration);
    const lines = alignColumns(rows.map(({ id, tracker, values }) => [id, tracker, values]));
    console.log([configuration.name, ...lines].join('\n'));
    // Values without findings are right: what is wrong somewhere, the tracker says in the first run.
    const missed = rows.filter(
      ({ tracker, values }) => tracker.startsWith('nothing') && !values.startsWith('right'),
    );
    expect(missed).toEqual([]);
  });

  const explored = campaign === 'all' || campaign === 'redundant';
  it.runIf(explored).each(tinyConfigurations)(
    'redundant mutants, every delay: $name',
    { timeout: 86_400_000 },
    (configuration) => {
      const runner = createMutantRunner(configuration);
      for (const { id } of redundantMutants) {
        const mutant = findMachineMutant(id)!;
        if (!runner.applies(mutant)) continue;
        const exploration = explore(
          (scheduler) => {
            const outcome = runner.run(mutant, { scheduler: () => scheduler, races: false });
            const { findings, isComplete, differences } = outcome;
            return { findings, result: `${isComplete} ${differences}` };
          },
          { delays: 1 },
        );
        console.log(`${configuration.name}: ${id}: ${exploration.runs} schedules`);
        expect(exploration.isExhausted).toBe(true);
        expect(exploration.findings).toEqual([]);
        expect(exploration.results.map(({ value }) => value)).toEqual(['true 0']);
      }
    },
  );
});
