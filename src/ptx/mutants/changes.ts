import type { Instruction, InstructionOf, MemoryOrder, Opcode } from '../../machine/index.js';

/** The CTA whose warp issues an instruction that is changed. */
interface EditContext {
  /** Threads of the CTA. */
  readonly threads: number;
}

/**
 * Edits an instruction of the machine: gives another, none (null), or itself where there is nothing to change. The PTX
 * instruction then treats results as if it had been executed.
 */
export type Edit = (instruction: Instruction, context: EditContext) => Instruction | null;

/** One way to weaken order. */
export interface Change {
  readonly kind: 'remove' | 'weaken';
  /** The difference that the change makes: `waits for one group less`. */
  readonly name: string;
  /** The modifiers of which an instruction must have one to be changed this way; default: any instruction. */
  readonly of?: readonly string[];
  /** The reason why the machine cannot tell the change; null where it can. */
  readonly unmodelled: string | null;
  readonly edit: Edit;
}

/** Changes instructions of these names; all others stay. */
function editOf<const Op extends Opcode>(
  ops: readonly Op[],
  edit: (instruction: InstructionOf<Op>, context: EditContext) => Instruction | null,
): Edit {
  const names: readonly string[] = ops;
  return (instruction, context) =>
    names.includes(instruction.op) ? edit(instruction as InstructionOf<Op>, context) : instruction;
}

/** A change that removes a part of the order; an instruction must have one of the modifiers `of`. */
function weaken(name: string, edit: Edit, of?: readonly string[]): Change {
  return { kind: 'weaken', name, unmodelled: null, edit, ...(of === undefined ? {} : { of }) };
}

/** A change that the machine does not see, with the reason. */
export function unseen(change: Pick<Change, 'kind' | 'name' | 'of'>, unmodelled: string): Change {
  return { ...change, unmodelled, edit: (instruction) => instruction };
}

/** Removes the instruction; for a wait, its loop is left at once. */
export const removed: Change = {
  kind: 'remove',
  name: 'removed',
  unmodelled: null,
  edit: () => null,
};

/** Removes the test: the phase counts as complete. */
export const removedTest: Change = {
  ...removed,
  edit: editOf(['mbarrier.test_wait'], ({ result }) => {
    result[0] = 1;
    return null;
  }),
};

/** Changes waits and tests to the phase before or after. */
export const flippedParity = weaken(
  'waits for the other parity',
  editOf(['mbarrier.try_wait.parity'], (wait) => ({ ...wait, parity: wait.parity === 0 ? 1 : 0 })),
  ['parity'],
);
export const flippedTestParity = weaken(
  'tests the other parity',
  editOf(['mbarrier.test_wait'], (test) =>
    'parity' in test.awaited
      ? { ...test, awaited: { parity: test.awaited.parity === 0 ? 1 : 0 } }
      : test,
  ),
  ['parity'],
);

const groupWaits = [
  'cp.async.wait_group',
  'cp.async.bulk.wait_group',
  'cp.async.bulk.wait_group.read',
  'wgmma.wait_group',
] as const;
/** A wait that allows one more of the most recent groups to be pending. */
export const oneGroupLess = weaken(
  'waits for one group less',
  editOf(groupWaits, (wait) => ({ ...wait, pending: wait.pending + 1 })),
);

/** The same change of a wait for all groups. */
export const allButOneGroup = weaken(
  'waits for one group less',
  editOf(['cp.async.wait_all'], ({ site }) => ({
    op: 'cp.async.wait_group',
    pending: 1,
    ...(site === undefined ? {} : { site }),
  })),
);
/** A wait after which bulk stores have read shared memory, but need not have written. */
export const readsAlone = weaken(
  'waits for reads alone',
  editOf(['cp.async.bulk.wait_group'], (one) => ({ ...one, op: 'cp.async.bulk.wait_group.read' })),
);

/** Minimum number of bytes that a bulk copy moves. */
const leastBulk = 16;
/** An arrival that expects too few bytes of a copy. */
export const fewerBytes: readonly Change[] = [
  weaken(
    'expects no bytes',
    editOf(['mbarrier.arrive.expect_tx'], (arrive) => ({ ...arrive, bytes: 0 })),
  ),
  weaken(
    `expects ${leastBulk} bytes less`,
    editOf(['mbarrier.arrive.expect_tx'], (arrive) => ({
      ...arrive,
      bytes: arrive.bytes - Math.min(leastBulk, arrive.bytes),
    })),
  ),
];

/** An arrival that releases nothing. */
export const relaxedArrival = weaken(
  'relaxed',
  editOf(['barrier.cluster.arrive'], (arrive) => ({
    ...arrive,
    op: 'barrier.cluster.arrive.relaxed',
  })),
);

const warpThreads = 32;

/** Barriers of a CTA that are complete before the last warp has come. */
export const fewerThreads = weaken(
  'waits for one warp less',
  editOf(['bar.sync', 'bar.arrive'], (barrier, { threads: all }) => {
    const threads = barrier.threads === 'all' ? all : barrier.threads;
    return threads > warpThreads ? { ...barrier, threads: threads - warpThreads } : barrier;
  }),
);

const weakOrders: Readonly<Partial<Record<MemoryOrder, MemoryOrder>>> = {
  acquire: 'relaxed',
  release: 'relaxed',
  acq_rel: 'relaxed',
};
const accesses = ['ld', 'st', 'atom', 'red'] as const;

/** Changes that weaken strong accesses. */
export const strongAccess: readonly Change[] = [
  weaken(
    'relaxed',
    editOf(accesses, (access) => ({ ...access, order: weakOrders[access.order] ?? access.order })),
    ['acquire', 'release', 'acq_rel'],
  ),
  weaken(
    'of the scope cta',
    editOf(accesses, (access) => ({ ...access, scope: 'cta' })),
    ['cluster', 'gpu', 'sys', 'volatile', 'mmio'],
  ),
];

/** Barriers that expect a wrong number of arrivals. */
export const counts = ([1, -1] as const).map((more) =>
  weaken(
    `expects one arrival ${more > 0 ? 'more' : 'less'}`,
    editOf(['mbarrier.init'], (init) => ({ ...init, count: init.count + more })),
  ),
);

/** An arrival that counts once more, so that none is left for another one. */
export const twice = weaken(
  'arrives once more',
  editOf(['mbarrier.arrive'], (arrive) => ({ ...arrive, count: (arrive.count ?? 1) + 1 })),
);

/** Fences of a narrower scope. */
export const narrowFence = weaken(
  'of the scope cta',
  editOf(['fence'], (fence) => ({ ...fence, scope: 'cta' })),
  ['cluster', 'gpu', 'sys', 'gl'],
);
/** A fence that orders only accesses of the generic proxy. */
export const genericFence = weaken(
  'fence.acq_rel.cta in its place',
  editOf(['fence.proxy.async'], ({ site }) => ({
    op: 'fence',
    scope: 'cta',
    ...(site === undefined ? {} : { site }),
  })),
);
