import type { MemoryModelName } from '../../../../src/machine/index.js';
import { edits, type Edit, type EditName } from './edits.js';
import { moves, type Move } from './moves.js';
import type { MachineMutant } from './mutant.js';
import { countedLoadSites, isaFenceSites, synchronisingSites } from './synchronisation-sites.js';

type SynchronisingOpcode = keyof typeof synchronisingSites;

/** What can be wrong about instructions, beside their absence. */
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
    description: `what is called "${site}" ${description}`,
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
  // More buffers than the warps count are room that nobody uses.
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
