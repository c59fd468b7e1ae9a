import {
  allLanes,
  clusterAddress,
  electedLane,
  splitClusterAddress,
  type Instruction,
  type InstructionOf,
  type Opcode,
} from '../../../../src/machine/index.js';

/** What becomes of an instruction: another one, or none. */
export interface Edit {
  /** What ids say before the site. */
  readonly label: string;
  /** What is wrong then, about an instruction. */
  readonly description: string;
  /** Whether it changes anything in a pair of CTAs only. */
  readonly needsPair?: boolean;
  /**
   * @param uses how many instructions of the site the warp has issued before
   */
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

/** What can be wrong about one instruction that orders others. */
export const edits = {
  remove: { label: 'remove', description: 'is not there', apply: () => null },
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
