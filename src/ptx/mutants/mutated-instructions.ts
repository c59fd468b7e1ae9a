import {
  allButOneGroup,
  type Change,
  counts,
  fewerBytes,
  fewerThreads,
  flippedParity,
  flippedTestParity,
  genericFence,
  narrowFence,
  oneGroupLess,
  readsAlone,
  relaxedArrival,
  removed,
  removedTest,
  strongAccess,
  twice,
  unseen,
} from './changes.js';

/**
 * The direction in which moving an instruction past one access to memory, or one operation of tensor cores, makes it
 * order less: waits move later, arrivals and commits earlier.
 */
export type Direction = 'earlier' | 'later';

/** The changes to instructions whose names begin with `name`. */
export interface MutatedInstruction {
  /** The opcode and the modifiers that it begins with; the row with the longest name counts. */
  readonly name: string;
  readonly changes: readonly Change[];
  readonly moves: readonly Direction[];
  /**
   * Further order that the instruction imposes and the machine does not check: then a clean run does not show that it
   * is redundant.
   */
  readonly unfollowed?: string;
}

const mbarrierOrder = 'every arrival is a release here, and every wait an acquire';

const removal = (name: string, ...moves: readonly Direction[]): MutatedInstruction => ({
  name,
  changes: [removed],
  moves,
});

const wait = (name: string, ...changes: readonly Change[]): MutatedInstruction => ({
  name,
  changes: [removed, ...changes],
  moves: ['later'],
});

const strong = (name: string): MutatedInstruction => ({ name, changes: strongAccess, moves: [] });

/** The instructions that order others, and how each is changed. */
export const mutatedInstructions: readonly MutatedInstruction[] = [
  ...['bar', 'barrier'].flatMap((name) => [
    {
      name: `${name}.sync`,
      changes: [removed, fewerThreads],
      moves: ['earlier', 'later'] as const,
    },
    { name: `${name}.arrive`, changes: [removed, fewerThreads], moves: ['earlier'] as const },
    {
      name: `${name}.cta.sync`,
      changes: [removed, fewerThreads],
      moves: ['earlier', 'later'] as const,
    },
    { name: `${name}.cta.arrive`, changes: [removed, fewerThreads], moves: ['earlier'] as const },
  ]),
  {
    ...removal('bar.warp.sync', 'earlier', 'later'),
    unfollowed:
      'what converged lanes of a warp tell one another is looked at with the models ptx and ptx-9.2 alone',
  },
  {
    name: 'barrier.cluster.arrive',
    changes: [removed, relaxedArrival],
    moves: ['earlier'],
  },
  removal('barrier.cluster.arrive.relaxed', 'earlier'),
  wait('barrier.cluster.wait'),
  { name: 'fence', changes: [removed, narrowFence], moves: ['earlier', 'later'] },
  removal('tensormap.cp_fenceproxy'),
  { name: 'membar', changes: [removed, narrowFence], moves: ['earlier', 'later'] },
  { name: 'fence.proxy.async', changes: [removed, genericFence], moves: ['earlier', 'later'] },
  {
    name: 'fence.proxy.async::generic',
    changes: [removed, genericFence],
    moves: ['earlier', 'later'],
  },
  { name: 'membar.proxy.async', changes: [removed, genericFence], moves: ['earlier', 'later'] },
  removal('fence.mbarrier_init', 'earlier', 'later'),
  removal('fence.proxy.tensormap::generic', 'earlier', 'later'),
  { name: 'mbarrier.init', changes: [removed, ...counts], moves: [] },
  {
    name: 'mbarrier.arrive',
    changes: [
      removed,
      twice,
      unseen({ kind: 'weaken', name: 'relaxed', of: ['release'] }, mbarrierOrder),
    ],
    moves: ['earlier'],
  },
  { name: 'mbarrier.arrive_drop', changes: [removed, twice], moves: ['earlier'] },
  {
    name: 'mbarrier.arrive.expect_tx',
    changes: [removed, ...fewerBytes],
    moves: ['earlier', 'later'],
  },
  removal('mbarrier.expect_tx', 'earlier', 'later'),
  wait(
    'mbarrier.try_wait',
    flippedParity,
    unseen({ kind: 'weaken', name: 'relaxed', of: ['acquire'] }, mbarrierOrder),
  ),
  { name: 'mbarrier.test_wait', changes: [removedTest, flippedTestParity], moves: [] },
  removal('cp.async.commit_group', 'earlier'),
  wait('cp.async.wait_group', oneGroupLess),
  wait('cp.async.wait_all', allButOneGroup),
  removal('cp.async.mbarrier.arrive', 'earlier'),
  removal('cp.async.bulk.commit_group', 'earlier'),
  wait('cp.async.bulk.wait_group', oneGroupLess, readsAlone),
  wait('cp.async.bulk.wait_group.read', oneGroupLess),
  removal('wgmma.fence', 'later'),
  removal('wgmma.commit_group', 'earlier'),
  wait('wgmma.wait_group', oneGroupLess),
  removal('tcgen05.commit', 'earlier'),
  wait('tcgen05.wait::ld'),
  wait('tcgen05.wait::st'),
  removal('tcgen05.fence::before_thread_sync', 'earlier'),
  removal('tcgen05.fence::after_thread_sync', 'later'),
  {
    name: 'griddepcontrol',
    changes: [unseen({ kind: 'remove', name: 'removed' }, 'launches come one after another here')],
    moves: [],
  },
  ...['ld', 'st', 'atom', 'red'].map(strong),
  // Asynchronous, and weak or relaxed: there is nothing to weaken.
  ...['st.async', 'red.async', 'st.bulk'].map((name) => ({ name, changes: [], moves: [] })),
];
