import {
  mutate,
  prepareFa4Program,
  type MachineMutant,
  type PreparedProgram,
  type ProgramChange,
  type ProgramRunOptions,
} from '../../kernels/fa4/program/index.js';
import type { Scheduler } from '../../src/machine/index.js';
import type { Problem } from '../../src/problem/index.js';
import { forwardBits, randomProblem, runProgram, type ProgramOutcome } from './fa4-program-runs.js';

/** A problem and how the program runs it, on which mutants are tried. */
export interface MutantConfiguration {
  readonly name: string;
  readonly problem: Problem;
  readonly options: ProgramRunOptions;
}

/** The smallest that show every mutant, the cheapest first. */
export const smallConfigurations: readonly MutantConfiguration[] = [
  {
    name: '1 CTA, 64, one tile',
    problem: randomProblem({ heads: 1, queries: 129, keys: 200, dims: [64, 64] }),
    options: { ctas: 1, clusters: 1, ring: { load: 3, mma: 3, layout: 3 } },
  },
  {
    name: '1 CTA, 64, two tiles',
    problem: randomProblem({ heads: 2, queries: 129, keys: 300, dims: [64, 64] }),
    options: { ctas: 1, clusters: 1, ring: { load: 4, mma: 4, layout: 4 } },
  },
  {
    name: '2 CTAs, 64, one tile',
    problem: randomProblem({ heads: 1, queries: 129, keys: 200, dims: [64, 64] }),
    options: { ctas: 2, clusters: 1, ring: { load: 3, mma: 3, layout: 3 } },
  },
  {
    name: '1 CTA, 192 and 128, two tiles',
    problem: randomProblem({ heads: 2, queries: 129, keys: 400, dims: [192, 128] }),
    options: { ctas: 1, clusters: 1 },
  },
  {
    name: '2 CTAs, 192 and 128, two tiles',
    problem: randomProblem({ heads: 2, queries: 129, keys: 100, dims: [192, 128] }),
    options: { ctas: 2, clusters: 1 },
  },
];

/** So short that every schedule with one delay can be run. */
export const tinyConfigurations: readonly MutantConfiguration[] = [
  {
    name: '1 CTA, 64, one stage, two short tiles',
    problem: randomProblem({ heads: 2, queries: 64, keys: 100, dims: [64, 64] }),
    options: { ctas: 1, clusters: 1 },
  },
  {
    name: '1 CTA, 192 and 128, one stage, two short tiles',
    problem: randomProblem({ heads: 2, queries: 64, keys: 100, dims: [192, 128] }),
    options: { ctas: 1, clusters: 1 },
  },
];

/** Mutants that only the overlap of one tile with the next shows: the second configuration, not the first. */
export const overlapMutants: readonly string[] = [
  'remove: Q empty: load waits',
  'remove: O stored: correction waits',
  'remove: P full, O rescaled: correction arrives after a tile',
  'turn threads: P full, O rescaled: correction arrives after a tile',
  'late: O stored: correction waits, after O: staged',
  'late: O: bulk stores awaited, after O stored: epilogue arrives',
  'early: K/V empty: MMA releases V, before O: multiplied',
  'late: Q empty: load waits, after Q: loaded',
];

/** Those of the campaign. */
export const largeConfigurations: readonly MutantConfiguration[] = [
  {
    name: '1 CTA, 128',
    problem: randomProblem({ heads: 2, queries: 256, keys: 512, dims: [128, 128] }),
    options: { ctas: 1, clusters: 1 },
  },
  {
    name: '2 CTAs, 128',
    problem: randomProblem({ heads: 2, queries: 512, keys: 512, dims: [128, 128] }),
    options: { ctas: 2, clusters: 1 },
  },
  {
    name: '1 CTA, 192 and 128',
    problem: randomProblem({ heads: 2, queries: 256, keys: 512, dims: [192, 128] }),
    options: { ctas: 1, clusters: 1 },
  },
  {
    name: '1 CTA, 64, causal',
    problem: randomProblem({ heads: 2, queries: 256, keys: 512, dims: [64, 64], causal: true }),
    options: { ctas: 1, clusters: 1, ring: { load: 3, mma: 3, layout: 3 } },
  },
];

/** Runs mutants of one configuration, of which all but the options of a run are made once. */
export interface MutantRunner {
  readonly configuration: MutantConfiguration;
  /** What the program issues, with the fences of the PTX ISA and without: `opcode: site`. */
  readonly issued: ReadonlySet<string>;
  /** Whether the configuration's program has what the mutant changes. */
  readonly applies: (mutant: MachineMutant) => boolean;
  /** @param mutant null: the program itself */
  readonly run: (
    mutant: MachineMutant | null,
    schedule?: { readonly scheduler?: () => Scheduler; readonly races?: boolean },
  ) => ProgramOutcome;
}

const unchanged: ProgramChange = (program) => program;

/** A run that takes longer never ends; the longest complete one has 15,000 steps. */
const mostSteps = 60_000;

export function createMutantRunner(configuration: MutantConfiguration): MutantRunner {
  const { problem, options } = configuration;
  const expected = forwardBits(problem);
  const prepared = new Map<string, PreparedProgram>();
  let current: {
    readonly change: ProgramChange;
    readonly scheduler: (() => Scheduler) | undefined;
  } = { change: unchanged, scheduler: undefined };

  function prepare(name: string, changes: ProgramRunOptions): PreparedProgram {
    let program = prepared.get(name);
    if (program === undefined) {
      program = prepareFa4Program(
        problem,
        {},
        {
          ...options,
          mostSteps,
          ...changes,
          change: (warp, context) => current.change(warp, context),
        },
      );
      prepared.set(name, program);
    }
    return program;
  }
  const { plan } = prepare('plain true', { races: true });

  const run: MutantRunner['run'] = (mutant, { scheduler, races = true } = {}) => {
    const { change, ...changes }: ProgramRunOptions = mutant === null ? {} : mutate(mutant, plan);
    const isRing = mutant?.kind === 'ring';
    const made = isRing ? mutant.id : mutant?.model === 'ptx' ? 'ptx' : 'plain';
    current = { change: change ?? unchanged, scheduler };
    const program = prepare(`${made} ${races} ${scheduler !== undefined}`, {
      ...changes,
      races,
      ...(scheduler === undefined ? {} : { scheduler: () => current.scheduler!() }),
    });
    return runProgram(program, expected);
  };

  const issued = new Set<string>();
  function sitesOf(isaFences: boolean): Set<string | undefined> {
    const sites = new Set<string | undefined>();
    const collect: ProgramChange = function* (program) {
      for (const instruction of program) {
        sites.add(instruction.site);
        issued.add(`${instruction.op}: ${instruction.site}`);
        yield instruction;
      }
    };
    const collecting = { ...options, isaFences, races: false, change: collect };
    prepareFa4Program(problem, {}, collecting).run(0);
    return sites;
  }
  const sites = { practice: sitesOf(false), ptx: sitesOf(true) };
  return {
    configuration,
    issued,
    run,
    applies: ({ site, change, model, needsPair }) => {
      if (needsPair && plan.ctas === 1) return false;
      if ('ring' in change) return !(plan.isRingUneven && change.ring.party === 'layout');
      const known = sites[model === 'ptx' ? 'ptx' : 'practice'];
      const isOtherCta = 'edit' in change && change.edit === 'otherCta';
      if (isOtherCta && plan.ctas === 1) return false;
      return known.has(site) && !('move' in change && !known.has(change.move.past));
    },
  };
}
