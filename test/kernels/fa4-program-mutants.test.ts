import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  countedLoadSites,
  findMachineMutant,
  isaFenceSites,
  machineMutants,
  prepareFa4Program,
  redundantMutants,
  synchronisingSites,
  warpRoles,
} from '../../kernels/fa4/program/index.js';
import { alignColumns } from '../../src/align-columns.js';
import {
  adversarialSchedulers,
  explore,
  inOrderScheduler,
  randomScheduler,
  type Scheduler,
} from '../../src/machine/index.js';
import {
  createMutantRunner,
  largeConfigurations,
  smallConfigurations,
  tinyConfigurations,
  type MutantConfiguration,
  type MutantRunner,
} from './fa4-program-mutant-runs.js';

type Mutant = (typeof machineMutants)[number];

/**
 * What the campaign tries: nothing, `all`, `redundant` (those mutants under every schedule with one
 * delay), or the configurations whose names begin so.
 */
const campaign = process.env['MUTANTS'];
/** Random schedules of each mutant in the campaign, beside the one in order and the adversarial ones. */
const randomSchedules = Number(process.env['MUTANT_SCHEDULES'] ?? 50);

describe('the mutants of the program', () => {
  it('have ids of their own', () => {
    expect(new Set(machineMutants.map(({ id }) => id)).size).toBe(machineMutants.length);
  });

  it('are about every instruction that orders others', () => {
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
    const issued = new Set<string>();
    for (const { problem, options } of smallConfigurations)
      for (const isaFences of [false, true]) {
        const program = prepareFa4Program(
          problem,
          {},
          {
            ...{ ...options, isaFences, races: false },
            change: function* (warp) {
              for (const instruction of warp) {
                issued.add(`${instruction.op}: ${instruction.site}`);
                yield instruction;
              }
            },
          },
        );
        program.run(0);
      }
    const ordering = [...issued].filter((name) => !others.test(name));
    expect(ordering.sort()).toEqual([...known].sort());
  });
});

describe('one run in order with the tracker of orders', () => {
  it('finds every mutant but those that are redundant', { timeout: 120_000 }, () => {
    const notFound = new Set(machineMutants.map(({ id }) => id));
    const redundant = new Set(redundantMutants.map(({ id }) => id));
    const tried = new Set<string>();
    const unsound: string[] = [];
    for (const configuration of smallConfigurations) {
      const runner = createMutantRunner(configuration);
      const whole = runner.run(null);
      expect(whole, configuration.name).toMatchObject({ findings: [], differences: 0 });
      for (const mutant of machineMutants) {
        const { id } = mutant;
        if (!notFound.has(id) || !runner.applies(mutant)) continue;
        tried.add(id);
        const { findings, isComplete, differences } = runner.run(mutant);
        if (findings.length > 0) notFound.delete(id);
        // Without findings every schedule has these bits, so they must be the forward's.
        else if (!isComplete || differences > 0) unsound.push(`${id} (${configuration.name})`);
      }
    }
    expect([...notFound].sort()).toEqual([...redundant].sort());
    expect(machineMutants.filter(({ id }) => !tried.has(id))).toEqual([]);
    expect(unsound).toEqual([]);
  });
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
    (_, i) => () => adversarialSchedulers(warpRoles.length)[i]!,
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
  const kinds = [...new Set(runs[0]!.map(({ kind }) => kind))];
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
        ...{ configuration: configuration.name, id: mutant.id },
        ...{ tracker: tryTracker(runner, mutant), values: tryValues(runner, mutant) },
      };
      if (file !== undefined) appendFileSync(file, JSON.stringify(row) + '\n');
      return row;
    });
}

describe.runIf(campaign !== undefined)('the campaign', () => {
  const configurations = [...largeConfigurations, ...smallConfigurations].filter(
    ({ name }) => campaign === 'all' || name.startsWith(campaign!),
  );
  it.each(configurations)('$name', { timeout: 86_400_000 }, (configuration) => {
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
