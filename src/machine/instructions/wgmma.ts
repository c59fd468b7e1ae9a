import type { PatternArray } from '../../formats/index.js';
import {
  elementBytes,
  innerBytes,
  siteOf,
  warpRows,
  type InstructionOf,
  type WarpgroupProduct,
} from '../isa/index.js';
import {
  type ByteStore,
  checkOperand,
  clearTags,
  descriptorChunks,
  gatherOperand,
  planeOfShared,
  rememberChunks,
  type MatrixDescriptor,
  type OperandExtent,
  tagsOf,
} from '../memory/index.js';
import { report, reportViolation, type MachineState, type WarpState } from '../state.js';
import { gatherTags, type PlaneOf, type TracedProduct } from '../value-tracer.js';
import { issue, visitChunks } from './issue.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  noMemory,
  type AsynchronousRecord,
  type InstructionRecords,
} from './record.js';
import { groupsToAwait, waitForOperations } from './wait-for-operations.js';
import { executeTogether, joinOperation, leaveOperation } from './warpgroups.js';

type Wgmma = InstructionOf<'wgmma.mma_async'>;

const lanes = 32;
/** Warps of a warpgroup; M is 64. */
const groupWarps = 4;

/** B: all of its columns. tf32 lies in memory as pairs of 16 bits. */
function extentOfB({ b, n }: Wgmma): OperandExtent {
  const bytes = elementBytes(b);
  return bytes === 1
    ? { rows: n, k: innerBytes, bytesPerElement: 1 }
    : { rows: n, k: innerBytes / 2, bytesPerElement: 2 };
}

/** The descriptor of one warp's rows of A, from the descriptor of all 64: K-major rows begin 16 rows further on. */
function partOfA(
  { a }: Wgmma,
  descriptor: MatrixDescriptor,
  warp: number,
): {
  readonly descriptor: MatrixDescriptor;
  readonly extent: OperandExtent;
  readonly first: number;
} {
  const part = warp % groupWarps;
  const bytesPerElement = elementBytes(a) === 1 ? 1 : 2;
  const k = innerBytes / bytesPerElement;
  if (descriptor.major !== 'k')
    return {
      descriptor,
      extent: { rows: groupWarps * warpRows, k, bytesPerElement },
      first: part * warpRows,
    };
  const address = descriptor.address + (part * warpRows * descriptor.strideByteOffset) / 8;
  return {
    descriptor: { ...descriptor, address },
    extent: { rows: warpRows, k, bytesPerElement },
    first: 0,
  };
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array | Uint16Array | Uint32Array) {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** An operand's patterns from shared memory, as elements of the gathering size. */
function gather(
  shared: Parameters<typeof gatherOperand>[0],
  descriptor: MatrixDescriptor,
  extent: OperandExtent,
  chunksOf: typeof descriptorChunks,
): Uint8Array {
  const Patterns = extent.bytesPerElement === 1 ? Uint8Array : Uint16Array;
  const target = new Patterns(extent.rows * extent.k);
  gatherOperand(shared, descriptor, extent, target, chunksOf);
  return bytesOf(target);
}

/**
 * Reads A from registers: lane l has the four bytes of row l / 4 from 4 (l mod 4) on, then those of the row 8 further
 * down, then both again 16 bytes further on. Source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of
 * wgmma.
 */
function spreadA({ words: registers }: ByteStore, target: Uint8Array): void {
  const words = new Uint32Array(target.buffer, target.byteOffset, target.byteLength / 4);
  const rowWords = innerBytes / 4;
  for (let lane = 0; lane < lanes; lane++)
    for (let register = 0; register < 4; register++) {
      const row = (lane >> 2) + 8 * (register & 1);
      words[row * rowWords + (lane & 3) + 4 * (register >> 1)] = registers[4 * lane + register];
    }
}

/**
 * Moves D between its fragment and [row][column]: the fragment is [lane][element], with two elements of
 * each eight columns.
 */
function moveD(
  { n, accumulator }: Wgmma,
  { words: fragment }: ByteStore,
  elements: Uint32Array,
  direction: 'load' | 'store',
): void {
  const isPacked = accumulator === 'fp16';
  const perLane = n / (isPacked ? 4 : 2);
  for (let lane = 0; lane < lanes; lane++)
    for (let i = 0; i < n / 2; i++) {
      const row = (lane >> 2) + 8 * ((i >> 1) & 1);
      const at = row * n + 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
      const register = lane * perLane + (isPacked ? i >> 1 : i);
      const shift = isPacked ? 16 * (i & 1) : 0;
      const mask = isPacked ? 0xffff : 0xffffffff;
      if (direction === 'load') elements[at] = (fragment[register] >>> shift) & mask;
      else
        fragment[register] = isPacked
          ? (fragment[register] & ~(mask << shift)) | (elements[at] << shift)
          : elements[at];
    }
}

function signBits(patterns: WarpgroupProduct['a'], format: Wgmma['a']): void {
  const sign = 1 << (8 * elementBytes(format) - 1);
  for (let i = 0; i < patterns.length; i++) patterns[i] ^= sign;
}

/** How an operand is read: its bytes or a plane of their tags, from chunks that are the same for both. */
interface Reading {
  readonly planeOf: PlaneOf;
  readonly chunksOf: typeof descriptorChunks;
}

/** Copies the rows of A that are the warp's, from registers or memory. */
function loadA(
  { cta, index }: WarpState,
  instruction: Wgmma,
  target: Uint8Array,
  { planeOf, chunksOf }: Reading,
): void {
  const { aOperand } = instruction;
  if (aOperand.space === 'registers') {
    spreadA(planeOf(aOperand.fragment), target);
    return;
  }
  const shared = planeOfShared(cta.shared, planeOf);
  const { descriptor, extent, first } = partOfA(instruction, aOperand.descriptor, index);
  const rows = gather(shared, descriptor, extent, chunksOf);
  target.set(rows.subarray(first * innerBytes, (first + warpRows) * innerBytes));
}

/** Copies B. */
function loadB(
  { cta }: WarpState,
  instruction: Wgmma,
  target: Uint8Array,
  { planeOf, chunksOf }: Reading,
): void {
  const shared = planeOfShared(cta.shared, planeOf);
  target.set(gather(shared, instruction.bOperand, extentOfB(instruction), chunksOf));
}

function multiply(
  { tracer }: MachineState,
  warp: WarpState,
  instruction: Wgmma,
  product: WarpgroupProduct,
): void {
  const { d, accumulate, negateA, negateB, a, b } = instruction;
  // Tags are gathered from the same chunks four times.
  const chunksOf = tracer === null ? descriptorChunks : rememberChunks();
  const reading = { planeOf: (store: ByteStore) => store, chunksOf };
  loadA(warp, instruction, bytesOf(product.a), reading);
  loadB(warp, instruction, bytesOf(product.b), reading);
  if (accumulate) moveD(instruction, d, product.c, 'load');
  else product.c.fill(0);
  const traced = tracer === null ? null : tracedOperands(warp, instruction, product, chunksOf);
  if (negateA) signBits(product.a, a);
  if (negateB) signBits(product.b, b);
  product.multiply();
  moveD(instruction, d, product.c, 'store');
  if (tracer === null || traced === null) return;
  const tags = tracer.product({ ...traced, d: product.c });
  if (tags === null) clearTags(d, 0, d.bytes.length);
  else tagsOf(d).forEach((plane, i) => moveD(instruction, plane, tags[i], 'store'));
}

/** The operands of a product as they are, with the tags of their elements. */
function tracedOperands(
  warp: WarpState,
  instruction: Wgmma,
  product: WarpgroupProduct,
  chunksOf: typeof descriptorChunks,
): Omit<TracedProduct, 'd'> {
  const { d, a, b, n, accumulate, accumulator } = instruction;
  const arrayLike = <Patterns extends PatternArray>(patterns: Patterns) =>
    patterns.slice() as Patterns;
  const operand = (
    patterns: PatternArray,
    format: string,
    isNegated: boolean,
    load: (target: Uint8Array, planeOf: PlaneOf) => void,
  ) => ({
    format,
    patterns: arrayLike(patterns),
    tags: gatherTags(
      () => arrayLike(patterns).fill(0),
      (planeOf, target) => load(bytesOf(target), planeOf),
    ),
    isNegated,
    scales: null,
  });
  return {
    mnemonic: instruction.op,
    site: siteOf(instruction),
    m: warpRows,
    n,
    k: product.a.length / warpRows,
    a: operand(product.a, a, instruction.negateA, (target, planeOf) =>
      loadA(warp, instruction, target, { planeOf, chunksOf }),
    ),
    b: operand(product.b, b, instruction.negateB, (target, planeOf) =>
      loadB(warp, instruction, target, { planeOf, chunksOf }),
    ),
    accumulator,
    c: accumulate
      ? {
          patterns: product.c.slice(),
          tags: gatherTags(
            () => new Uint32Array(product.c.length),
            (planeOf, target) => moveD(instruction, planeOf(d), target, 'load'),
          ),
        }
      : null,
  };
}

const mma: AsynchronousRecord<'wgmma.mma_async'> = {
  ready: alwaysReady,
  isWait: false,
  reads: {
    registers: ({ aOperand }) => (aOperand.space === 'registers' ? [aOperand.fragment] : []),
    memory: (_machine, cta, instruction, visit) => {
      const { aOperand, bOperand } = instruction;
      if (aOperand.space === 'shared') {
        const bytesPerElement = elementBytes(instruction.a) === 1 ? 1 : 2;
        const extent = {
          rows: groupWarps * warpRows,
          k: innerBytes / bytesPerElement,
          bytesPerElement,
        };
        visitChunks(cta, descriptorChunks(aOperand.descriptor, extent as OperandExtent), visit);
      }
      visitChunks(cta, descriptorChunks(bOperand, extentOfB(instruction)), visit);
    },
  },
  writes: { registers: ({ d }) => [d], memory: noMemory },
  unit: {
    name: 'tensor core',
    operation: 'wgmma',
    cycles: ({ n, a }, { mmaFlops }) =>
      (2 * groupWarps * warpRows * n * (innerBytes / elementBytes(a))) /
      groupWarps /
      mmaFlops[elementBytes(a) === 1 ? 8 : 16],
    latency: () => 0,
  },
  meaning: 'is',
  describe: ({ n, a, b, accumulator, accumulate }) => ({
    shape: `64 × ${n}`,
    operands: a === b ? a : `${a}, ${b}`,
    accumulator,
    accumulate,
  }),
  execute: (machine, warp, instruction) => {
    const { aOperand, bOperand, a, b, n, accumulator, saturates = false } = instruction;
    const step = executeTogether(machine, warp, siteOf(instruction));
    const refused = (): 'refused' => {
      leaveOperation(machine, step);
      return 'refused';
    };
    const product = machine.warpgroupProducts({ a, b, n, accumulator, saturates });
    if (typeof product === 'string') {
      report(machine, warp, 'instruction-shape', product);
      return refused();
    }
    const { shared } = warp.cta;
    if (aOperand.space === 'shared') {
      const { descriptor, extent } = partOfA(instruction, aOperand.descriptor, warp.index);
      if (reportViolation(machine, warp, checkOperand(shared, descriptor, extent)))
        return refused();
    }
    if (reportViolation(machine, warp, checkOperand(shared, bOperand, extentOfB(instruction))))
      return refused();
    // The tensor core executes a warpgroup's in the order of issue.
    const before = warp.openWarpgroupGroup.at(-1) ?? warp.warpgroupGroups.flat().at(-1);
    const operation = issue(machine, warp, mma, instruction, {
      after: before === undefined || before.isDone ? [] : [before],
      predecessors: [before?.order ?? null],
      perform: () => multiply(machine, warp, instruction, product),
      isPart: true,
    });
    joinOperation(machine, step, operation);
    warp.openWarpgroupGroup.push(operation);
    warp.loads.push(operation);
    return;
  },
};

const waitForProducts = waitForOperations<'wgmma.wait_group'>({
  name: 'wgmma.mma_async',
  operations: ({ warpgroupGroups }, { pending }) =>
    warpgroupGroups.slice(0, groupsToAwait(warpgroupGroups, pending)).flat(),
  forget: (warp, { pending }, done) => {
    warp.warpgroupGroups = warp.warpgroupGroups.slice(groupsToAwait(warp.warpgroupGroups, pending));
    const complete = new Set(done);
    warp.loads = warp.loads.filter((load) => !complete.has(load));
  },
  describe: ({ pending }) => ({ pending }),
});

/**
 * Hopper's asynchronous MMA. Each warp of the warpgroup multiplies its own 16 rows of A, and the four of them have to execute the same instructions: it is
 * under way when all four have issued it, and completes for all at once. Only the program knows whether a `wgmma.fence` orders registers before it. Registers
 * are in use until a `wgmma.wait_group`: an earlier access waits, or is reported, as the memory model says. Source: PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Multiply-Accumulate Instructions".
 */
export const wgmmaRecords: InstructionRecords<
  'wgmma.mma_async' | 'wgmma.fence' | 'wgmma.commit_group' | 'wgmma.wait_group'
> = {
  'wgmma.mma_async': mma,
  'wgmma.fence': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, instruction) => {
      executeTogether(machine, warp, siteOf(instruction));
      instruction.onExecution?.();
    },
  },
  'wgmma.commit_group': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, instruction) => {
      executeTogether(machine, warp, siteOf(instruction));
      warp.warpgroupGroups.push(warp.openWarpgroupGroup);
      warp.openWarpgroupGroup = [];
    },
  },
  'wgmma.wait_group': {
    ...waitForProducts,
    execute: (machine, warp, instruction) => {
      executeTogether(machine, warp, siteOf(instruction));
      waitForProducts.execute(machine, warp, instruction);
    },
  },
};
