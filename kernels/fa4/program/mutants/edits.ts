import {
  allLanes,
  clusterAddress,
  electedLane,
  type Instruction,
  type InstructionOf,
  type Opcode,
  splitClusterAddress,
} from '../../../../src/machine/index.js';

/** A replacement of an instruction: by another one, or by none. */
export interface Edit {
  /** The beginning of ids, before the site. */
  readonly label: string;
  /** The resulting error, as said of an instruction. */
  readonly description: string;
  /** Whether it changes anything in a pair of CTAs only. */
  readonly needsPair?: boolean;
  /** @param uses number of instructions of the site that the warp has issued before */
  readonly apply: (instruction: Instruction, uses: number) => Instruction | null;
}

/** An edit of the instructions with certain opcodes, which leaves others as they are. */
function editOf<Op extends Opcode>(
  ops: readonly Op[],
  edit: Omit<Edit, 'apply'>,
  apply: (instruction: InstructionOf<Op>, uses: number) => Instruction,
): Edit {
  const isNamed = (instruction: Instruction): instruction is InstructionOf<Op> & Instruction =>
    (ops as readonly Opcode[]).includes(instruction.op);
  return {
    ...edit,
    apply: (instruction, uses) => (isNamed(instruction) ? apply(instruction, uses) : instruction),
  };
}

type Addressed = InstructionOf<
  'mbarrier.arrive' | 'mbarrier.arrive.expect_tx' | 'cp.async.bulk.tensor.shared.global'
>;

/** The same instruction with the barrier of the pair's other CTA. */
function toOtherCta(instruction: Addressed): Instruction {
  const { rank, offset } = splitClusterAddress(instruction.barrier);
  return { ...instruction, barrier: clusterAddress(1 - rank, offset) };
}

function withCount(instruction: InstructionOf<'mbarrier.init'>, count: number): Instruction {
  return { ...instruction, count };
}

const addressed = [
  'mbarrier.arrive',
  'mbarrier.arrive.expect_tx',
  'cp.async.bulk.tensor.shared.global',
] as const;

/** Possible errors in one instruction that orders others. */
export const edits = {
  remove: { label: 'remove', description: 'is left out', apply: () => null },
  flipParity: editOf(
    ['mbarrier.try_wait.parity'],
    { label: 'flip parity', description: 'begins with the other phase, and goes on so' },
    (wait) => ({ ...wait, parity: wait.parity === 0 ? 1 : 0 }),
  ),
  flipFirstParity: editOf(
    ['mbarrier.try_wait.parity'],
    { label: 'flip first parity', description: 'waits for the other phase the first time' },
    (wait, uses) => (uses === 0 ? { ...wait, parity: wait.parity === 0 ? 1 : 0 } : wait),
  ),
  turnThreads: editOf(
    ['mbarrier.arrive'],
    {
      label: 'turn threads',
      description: 'arrives with one lane in place of all, or with all in place of one',
    },
    (arrive) => ({ ...arrive, lanes: arrive.lanes === allLanes ? electedLane : allLanes }),
  ),
  otherCta: editOf(
    addressed,
    { label: 'other CTA', description: "names the other CTA's barrier", needsPair: true },
    toOtherCta,
  ),
  otherCtaAlone: editOf(
    ['tcgen05.commit'],
    { label: 'other CTA alone', description: 'reaches the other CTA alone', needsPair: true },
    (commit) => ({ ...commit, ctas: [1] }),
  ),
  ownCtaAlone: editOf(
    ['tcgen05.commit'],
    { label: 'own CTA alone', description: 'is not multicast to the pair', needsPair: true },
    (commit) => ({ ...commit, ctas: [0] }),
  ),
  halveBytes: editOf(
    ['mbarrier.arrive.expect_tx'],
    { label: 'half the bytes', description: 'expects half the bytes, in a pair those of one CTA' },
    (expect) => ({ ...expect, bytes: expect.bytes / 2 }),
  ),
  doubleBytes: editOf(
    ['mbarrier.arrive.expect_tx'],
    { label: 'twice the bytes', description: 'expects bytes that nobody loads' },
    (expect) => ({ ...expect, bytes: expect.bytes * 2 }),
  ),
  countMore: editOf(
    ['mbarrier.init'],
    { label: 'count + 1', description: 'expects an arrival too many' },
    (init) => withCount(init, init.count + 1),
  ),
  countLess: editOf(
    ['mbarrier.init'],
    { label: 'count - 1', description: 'expects an arrival too few' },
    (init) => withCount(init, init.count - 1),
  ),
  countOfOneCta: editOf(
    ['mbarrier.init'],
    { label: 'count of one CTA', description: 'expects one CTA to arrive', needsPair: true },
    (init) => withCount(init, init.count / 2),
  ),
} as const satisfies Readonly<Record<string, Edit>>;

/** The name of an edit. */
export type EditName = keyof typeof edits;

/**
 * The sites of the program's instructions that order others, by opcode, without those that only the PTX
 * ISA requires. They include sites that only some head dimensions or a pair of CTAs have.
 */
export const synchronisingSites = {
  'mbarrier.init': [
    ...['Q full: initialised', 'Q empty: initialised', 'K/V full: initialised'],
    ...['K/V empty: initialised', 'S full: initialised', 'P full, O rescaled: initialised'],
    ...['P full, last quarter: initialised', 'O full: initialised'],
    ...['statistics empty: initialised', 'O staged: initialised', 'O stored: initialised'],
    ...['Q free of O: initialised', 'Q taken: initialised', 'tensor memory free: initialised'],
  ],
  'mbarrier.try_wait.parity': [
    ...['K/V empty: load waits', 'K/V empty: load waits for the middle'],
    ...[
      'K/V empty: load waits at its end',
      'Q empty: load waits',
      'Q empty: load waits at its end',
    ],
    ...['Q free of O: load waits', 'Q full: MMA waits', 'K/V full: MMA waits'],
    ...['P full, O rescaled: MMA waits', 'P full, last quarter: MMA waits'],
    ...['S full: softmax waits', 'statistics empty: softmax waits', 'O full: correction waits'],
    ...['O stored: correction waits', 'O stored: correction waits at its end'],
    ...['O staged: epilogue waits', 'Q taken: epilogue waits', 'tensor memory: peer has left'],
  ],
  'mbarrier.arrive': [
    ...['P full, O rescaled: softmax arrives', 'P full, last quarter: softmax arrives'],
    'P full, O rescaled: correction arrives at the start',
    'P full, O rescaled: correction arrives after a block',
    'P full, O rescaled: correction arrives after a tile',
    'statistics empty: correction releases the first block',
    ...['statistics empty: correction releases α', 'statistics empty: correction releases sums'],
    'statistics empty: correction releases the last block',
    ...['O staged: correction arrives', 'O stored: epilogue arrives'],
    ...['Q taken: load arrives', 'Q free of O: epilogue arrives', 'tensor memory: peer may free'],
  ],
  'mbarrier.arrive.expect_tx': ['Q full: load expects bytes', 'K/V full: load expects bytes'],
  'tcgen05.commit': [
    ...['S full: MMA commits', 'O full: MMA commits', 'Q empty: MMA releases'],
    ...['K/V empty: MMA releases K', 'K/V empty: MMA releases V'],
  ],
  'bar.sync': [
    ...['barriers initialised: all threads', 'tensor memory allocated'],
    'statistics full: correction waits for the first block',
    'statistics full: correction waits for α',
    'statistics full: correction waits for sums',
    'tensor memory: all have left',
  ],
  'bar.arrive': [
    ...['statistics full: softmax arrives with α', 'statistics full: softmax arrives with sums'],
    'tensor memory: left',
  ],
  'bar.warp.sync': ['P: lanes joined'],
  'barrier.cluster.arrive.relaxed': ['barriers initialised: cluster arrives'],
  'barrier.cluster.wait': ['barriers initialised: cluster waits'],
  'fence.mbarrier_init': ['barriers initialised: fence'],
  'fence.proxy.async': ['O: fence before the epilogue'],
  'tcgen05.wait::st': ['P: stores awaited', 'P: last stores awaited', 'O: stores awaited'],
  'tcgen05.relinquish_alloc_permit': ['tensor memory: no more allocations'],
  'tcgen05.dealloc': ['tensor memory: freed'],
  'cp.async.bulk.commit_group': ['O: group'],
  'cp.async.bulk.wait_group.read': ['O: bulk stores awaited'],
} as const satisfies Partial<Record<Opcode, readonly string[]>>;

/** Sites that the program has with `isaFences` alone. */
export const isaFenceSites = {
  'tcgen05.fence::before_thread_sync': ['P: fence before arriving', 'O: fence before arriving'],
  'tcgen05.fence::after_thread_sync': [
    ...['S: fence after waiting', 'O: fence after waiting', 'MMA: fence after waiting'],
  ],
  'tcgen05.wait::ld': ['S: loads awaited', 'O: loads awaited'],
} as const satisfies Partial<Record<Opcode, readonly string[]>>;

/** Loads whose bytes a barrier counts. */
export const countedLoadSites = {
  'cp.async.bulk.tensor.shared.global': ['Q: loaded', 'K: loaded', 'V: loaded'],
} as const satisfies Partial<Record<Opcode, readonly string[]>>;
