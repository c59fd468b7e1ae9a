import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  memoryModels,
  randomScheduler,
  timedScheduler,
  type Instruction,
  type Scheduler,
  type Step,
} from '../../src/machine/index.js';
import { sampled } from '../setup/effort.js';
import { expectedProduct, runGemm, without, type Change } from './gemm-program.js';
import { kindsOf, messagesOf } from './launch.js';
import { firstDifference } from './memory/first-difference.js';

/** Random schedules; raise it for a campaign. */
const randomSchedules = Number(process.env['MACHINE_SCHEDULES'] ?? 8);
const schedulers = [
  ...adversarialSchedulers(6),
  ...Array.from({ length: randomSchedules }, (_, seed) => randomScheduler(seed)),
  timedScheduler(),
];

/** The instructions of the program by site. */
function sitesOf(): Map<string, Instruction> {
  const sites = new Map<string, Instruction>();
  runGemm({ races: false }, function* (program) {
    for (const instruction of program) {
      sites.set(instruction.site ?? '', instruction);
      yield instruction;
    }
  });
  return sites;
}

const synchronisation =
  /^(mbarrier\.(init|arrive|try)|bar\.|fence|tcgen05\.(wait|commit|fence|dealloc)|cp\.async\.bulk\.(wait|commit))/;
const synchronising = [...sitesOf()].filter(([, { op }]) => synchronisation.test(op));

describe('a GEMM in a pipeline', () => {
  it('has the bits of the tensor core under every schedule, and nothing illegal', () => {
    for (const scheduler of schedulers) {
      const run = runGemm({ scheduler });
      expect(messagesOf(run), scheduler.name).toEqual([]);
      expect(firstDifference(run.out, expectedProduct), scheduler.name).toBe(null);
    }
  });

  it('is legal in every memory model', () => {
    for (const [name, model] of Object.entries(memoryModels)) {
      const run = runGemm({ model });
      expect(messagesOf(run), name).toEqual([]);
      expect(firstDifference(run.out, expectedProduct), name).toBe(null);
    }
  });

  it('keeps of an operation that is done nothing that came before it', () => {
    const late = adversarialSchedulers(6).find(({ name }) => name === 'all operations late')!;
    const operations = new Set<Step>();
    const scheduler: Scheduler = {
      ...late,
      choose: (steps) => {
        const chosen = late.choose(steps);
        operations.add(steps[chosen]);
        return chosen;
      },
    };
    runGemm({ scheduler });
    const kept = [...operations].flatMap((step) => ('after' in step ? [step.after.length] : []));
    expect(kept.length).toBeGreaterThan(20);
    expect(new Set(kept)).toEqual(new Set([0]));
  });

  it('synchronises at twenty places and more', () => {
    expect(synchronising.length).toBeGreaterThan(20);
  });

  it.each(synchronising)('is found without "%s"', (site, { op }) => {
    const run = runGemm({ model: memoryModels.ptx }, without(site));
    expect(kindsOf(run).length).toBeGreaterThan(0);
    // tcgen05 fences matter to the ISA's text alone.
    if (op.startsWith('tcgen05.fence')) expect(messagesOf(runGemm({}, without(site)))).toEqual([]);
  });

  it.each(['operands full: MMA waits', 'operands empty: load waits', 'D full: waits'])(
    'gives another result in some schedule without "%s"',
    (site) => {
      const differs = schedulers.some((scheduler) => {
        const { out } = runGemm({ scheduler, races: false }, without(site));
        return out.some((bits, i) => bits !== expectedProduct[i]);
      });
      expect(differs).toBe(true);
    },
  );

  it('is found by every text that asks for no less than one that finds it', () => {
    // From what one pipe guarantees to the letter of one edition.
    const stricter = ['pipe', 'practice', 'ptx', 'ptx-9.2'] as const;
    for (const [site] of sampled(synchronising, 8)) {
      const isFound = stricter.map(
        (name) => runGemm({ model: memoryModels[name] }, without(site)).findings.length > 0,
      );
      expect(isFound, site).toEqual([...isFound].sort());
    }
  });

  it('is found when an arrival comes too early, or on another barrier', () => {
    const earlier: Change = function* (program) {
      let held: Instruction | null = null;
      for (const instruction of program) {
        // Tells that D is free before it has been loaded.
        if (instruction.site === 'D: loaded') held = instruction;
        else yield instruction;
        if (held !== null && instruction.site === 'D empty: arrives') {
          yield held;
          yield { op: 'tcgen05.wait::ld' };
          held = null;
        }
      }
    };
    expect(kindsOf(runGemm({}, earlier))).toContain('race');
    const elsewhere: Change = function* (program) {
      for (const instruction of program)
        yield instruction.op === 'tcgen05.commit' && instruction.barrier === 16
          ? { ...instruction, barrier: 24 }
          : instruction;
    };
    expect(kindsOf(runGemm({}, elsewhere)).length).toBeGreaterThan(0);
  });

  it('moves the bytes and multiplies what its shapes say', () => {
    const [{ mmaFlops, sharedBytes, globalBytes }] = runGemm().counters;
    expect(mmaFlops).toEqual({ D: 2 * 64 * 16 * 48 });
    expect(globalBytes['A → TMA']).toBe(2 * 64 * 48 * 2);
    expect(globalBytes['B → TMA']).toBe(16 * 48 * 2);
    expect(globalBytes['TMA → D']).toBe(64 * 16 * 4);
    expect(sharedBytes['A → mma']).toBe(2 * 64 * 48 * 2);
  });
});
