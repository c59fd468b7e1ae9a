import {
  type MemoryModelName,
  memoryModels,
  type WarpProgram,
} from '../../../../src/machine/index.js';
import type { ProgramMutant } from '../../../kernel-program.js';
import type { ProgramPlan, RingDepths } from '../plan.js';
import {
  countedLoadSites,
  type Edit,
  type EditName,
  edits,
  isaFenceSites,
  synchronisingSites,
} from './edits.js';
import { applyMove, type Move, moves } from './moves.js';
import type { ProgramChange, ProgramRunOptions } from '../run-program.js';

/** One mistake in the synchronisation of the program's warps. */
export interface MachineMutant extends ProgramMutant {
  readonly kind: EditName | Move['direction'] | 'ring';
  /** Origin of the mistake. */
  readonly source?: string;
  readonly change:
    | { readonly edit: EditName }
    | { readonly move: Move }
    | { readonly ring: { readonly party: keyof RingDepths; readonly more: 1 | -1 } };
}

type SynchronisingOpcode = keyof typeof synchronisingSites;

/** Possible errors in instructions, beside their absence. */
const editsOf: Partial<Record<SynchronisingOpcode, readonly EditName[]>> = {
  'mbarrier.init': ['countMore'],
  'mbarrier.try_wait.parity': ['flipParity', 'flipFirstParity'],
  'mbarrier.arrive': ['turnThreads', 'otherCta'],
  'mbarrier.arrive.expect_tx': ['halveBytes', 'doubleBytes', 'otherCta'],
  'tcgen05.commit': ['ownCtaAlone', 'otherCtaAlone'],
};

/** Barriers that expect more than one arrival, so that they can expect one less. */
const countedBarriers = [
  ...['P full, O rescaled', 'P full, last quarter', 'statistics empty', 'O staged', 'O stored'],
  'tensor memory free',
];
/** Barriers on which both CTAs of a pair arrive. */
const pairBarriers = ['P full, O rescaled', 'P full, last quarter'];

function editMutant(
  edit: EditName,
  site: string,
  model: MemoryModelName = 'practice',
): MachineMutant {
  const { label, description, needsPair = false }: Edit = edits[edit];
  return {
    id: `${label}: ${site}`,
    site,
    kind: edit,
    needsPair,
    model,
    change: { edit },
    description: `"${site}" ${description}`,
  };
}

function moveMutant(move: Move): MachineMutant {
  const { direction, site, past, description, source } = move;
  return {
    id: `${direction}: ${site}, ${direction === 'early' ? 'before' : 'after'} ${past}`,
    site,
    kind: direction,
    description,
    needsPair: false,
    model: 'practice',
    ...(source === undefined ? {} : { source }),
    change: { move },
  };
}

function ringMutant(party: 'load' | 'mma' | 'layout', more: 1 | -1): MachineMutant {
  const who = { load: 'the load warp', mma: 'the MMA warp', layout: 'the layout' }[party];
  return {
    id: `ring: ${party} ${more === 1 ? '+' : '-'} 1`,
    site: 'K/V',
    kind: 'ring',
    needsPair: false,
    model: 'practice',
    description: `${who} counts a buffer of the K/V ring too ${more === 1 ? 'many' : 'few'}`,
    change: { ring: { party, more } },
  };
}

function* allMutants(): Generator<MachineMutant> {
  for (const [op, sites] of Object.entries(synchronisingSites))
    for (const site of sites) {
      yield editMutant('remove', site);
      for (const edit of editsOf[op as SynchronisingOpcode] ?? []) yield editMutant(edit, site);
    }
  for (const barrier of countedBarriers) yield editMutant('countLess', `${barrier}: initialised`);
  for (const barrier of pairBarriers) yield editMutant('countOfOneCta', `${barrier}: initialised`);
  for (const sites of Object.values(countedLoadSites))
    for (const site of sites) yield editMutant('otherCta', site);
  for (const sites of Object.values(isaFenceSites))
    for (const site of sites) yield editMutant('remove', site, 'ptx');
  for (const move of moves) yield moveMutant(move);
  for (const party of ['load', 'mma'] as const)
    for (const more of [1, -1] as const) yield ringMutant(party, more);
  // Buffers beyond those that the warps count are unused room.
  yield ringMutant('layout', -1);
}

/**
 * The program with one mistake each: every instruction that orders others left out, every parity, count
 * of arrivals, count of bytes and CTA wrong, signals too early, waits too late, rings of unequal depths.
 */
export const machineMutants: readonly MachineMutant[] = [...allMutants()];

/** A mutant by its id; undefined if there is none. */
export function findMachineMutant(id: string): MachineMutant | undefined {
  return machineMutants.find((mutant) => mutant.id === id);
}

function editing(name: EditName, site: string): ProgramChange {
  const edit: Edit = edits[name];
  return function* (program: WarpProgram): WarpProgram {
    let uses = 0;
    for (const instruction of program) {
      if (instruction.site !== site) yield instruction;
      else {
        const edited = edit.apply(instruction, uses++);
        if (edited !== null) yield edited;
      }
    }
  };
}

/**
 * The options with which `prepareFa4Program` runs a mutant. It only filters the instructions of the
 * warps, or sets options: the program knows nothing of it. A change counts from the warp's beginning, so
 * it may be used for several runs.
 *
 * @param plan of the program without the mutant
 */
export function mutate(
  { change, site, model }: MachineMutant,
  { ring }: Pick<ProgramPlan, 'ring'>,
): Pick<ProgramRunOptions, 'change' | 'ring' | 'isaFences' | 'model'> {
  const options = model === 'practice' ? {} : { isaFences: true, model: memoryModels[model] };
  if ('edit' in change) return { ...options, change: editing(change.edit, site) };
  if ('move' in change) return { ...options, change: (program) => applyMove(change.move, program) };
  const { party, more } = change.ring;
  return { ...options, ring: { ...ring, [party]: ring[party] + more } };
}

/** A mutant whose results are the program's in every schedule of the machine. */
export interface RedundantMutant {
  readonly id: string;
  /**
   * `implied`: the order that the instruction gives exists without it. `not modelled`: the event that
   * it guards against does not happen on the machine.
   */
  readonly because: 'implied' | 'not modelled';
  readonly reason: string;
}

/**
 * The mutants that no schedule shows, in any configuration. A complete run of each without findings
 * proves it for all schedules of its configuration (theorem in src/machine/ordering/
 * barrier-history.ts).
 */
export const redundantMutants: readonly RedundantMutant[] = [
  {
    id: 'remove: Q empty: load waits at its end',
    because: 'implied',
    reason:
      "the wait for the ring's last buffer comes after the last product with V, which the MMA warp issues after Q's last commit",
  },
  {
    id: 'remove: O stored: correction waits at its end',
    because: 'implied',
    reason: 'the epilogue warp of the same CTA arrives there itself before it ends',
  },
  {
    id: 'remove: Q taken: epilogue waits',
    because: 'implied',
    reason:
      "the epilogue's next wait is for a staged O, which needs the next Q, which is loaded after the load warp has taken note",
  },
  {
    id: 'early: statistics empty: correction releases sums, before row maxima: read',
    because: 'implied',
    reason:
      "the next maxima are stored at the end of a tile, after signals of the tile's first block that come after both reads",
  },
  {
    id: 'remove: tensor memory: no more allocations',
    because: 'implied',
    reason: 'no other CTA waits for tensor memory, and the CTA allocates once',
  },
  {
    id: 'remove: P: lanes joined',
    because: 'not modelled',
    reason: 'the lanes of a warp are converged at every instruction',
  },
];
