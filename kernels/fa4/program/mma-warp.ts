import type { Instruction, MatrixDescriptor, WarpProgram } from '../../../src/machine/index.js';
import { tileQueries } from '../thread-blocks.js';
import {
  allocateTensorMemory,
  freeTensorMemory,
  type ProgramContext,
  ringAddress,
  setUp,
  tensorAddressRegisters,
} from './setup.js';
import { scoreColumns, swizzleOf, type ProgramPlan, type TileLayout } from './plan.js';
import {
  advance,
  commitTo,
  flip,
  leader,
  waitFor,
  type Parity,
  type RingPlace,
} from './signals.js';
import type { WorkTile } from './tiles.js';

/** Bytes of K that one instruction sums over: 16 elements of 16 bits, or 32 of 8. */
const instructionBytes = 32;
/** Rows after which the positions in a swizzled box repeat. */
const patternRows = 8;
/** The part of a block's keys whose P is complete when the product with V begins. */
const firstPart = 3 / 4;

/** One instruction's part of a tile whose rows are those of the operand: K is contiguous. */
function rowsDescriptor(
  { boxBytes, rows }: TileLayout,
  address: number,
  step: number,
): MatrixDescriptor {
  const byte = step * instructionBytes;
  const box = Math.floor(byte / boxBytes);
  return {
    address: address + box * boxBytes * rows + (byte % boxBytes),
    leadingByteOffset: 0,
    strideByteOffset: patternRows * boxBytes,
    swizzle: swizzleOf(boxBytes),
    major: 'k',
  };
}

/** One instruction's part of a tile whose rows are summed over. */
function columnsDescriptor(
  { boxBytes, rows }: TileLayout,
  address: number,
  firstRow: number,
): MatrixDescriptor {
  return {
    address: address + firstRow * boxBytes,
    leadingByteOffset: boxBytes * rows,
    strideByteOffset: patternRows * boxBytes,
    swizzle: swizzleOf(boxBytes),
    major: 'mn',
  };
}

/** Elements that one instruction sums over. */
function instructionLength({ elementBytes }: ProgramPlan): number {
  return instructionBytes / elementBytes;
}

/** S of a stage = Q·Kᵀ. */
function* multiplyScores(
  plan: ProgramPlan,
  tensor: number,
  stage: number,
  keys: number,
): WarpProgram {
  const { ctas, format, shape, q, k, addresses, columns } = plan;
  const length = instructionLength(plan);
  for (let step = 0; step * length < shape.qkDim; step++)
    yield {
      op: 'tcgen05.mma',
      group: ctas,
      a: format,
      b: format,
      site: 'S: multiplied',
      shape: { m: tileQueries * ctas, n: scoreColumns, k: length },
      d: tensor + columns.s[stage],
      aOperand: { space: 'shared', descriptor: rowsDescriptor(q, addresses.q[stage], step) },
      bOperand: rowsDescriptor(k, keys, step),
      accumulate: step > 0,
      names: { a: 'Q', b: 'K', d: 'S' },
    };
}

/** O of a stage += P·V; waits for the last quarter of P before it uses that. */
function* multiplyOutput(
  plan: ProgramPlan,
  tensor: number,
  {
    stage,
    values,
    isFirst,
    lastQuarter,
  }: {
    readonly stage: number;
    readonly values: number;
    readonly isFirst: boolean;
    readonly lastQuarter: WarpProgram;
  },
): WarpProgram {
  const { ctas, format, shape, v, columns } = plan;
  const length = instructionLength(plan);
  for (let step = 0; step * length < scoreColumns; step++) {
    if (step * length === scoreColumns * firstPart) yield* lastQuarter;
    yield {
      op: 'tcgen05.mma',
      group: ctas,
      a: format,
      b: format,
      site: 'O: multiplied',
      shape: { m: tileQueries * ctas, n: shape.vDim, k: length },
      d: tensor + columns.o[stage],
      aOperand: {
        space: 'tensor',
        address: tensor + columns.p[stage] + (step * instructionBytes) / 4,
      },
      bOperand: columnsDescriptor(v, values, step * length),
      accumulate: !isFirst || step > 0,
      names: { a: 'P', b: 'V', d: 'O' },
    };
  }
}

/**
 * The warp that issues the MMAs: S of both stages first, then for every block P·V and the next S in
 * turn. In a pair of CTAs the leader issues for both. Source: `mma` in flash_fwd_sm100.py.
 */
export function* mmaWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles } = context;
  const { barriers, ring, stages, isaFences } = plan;
  const address = tensorAddressRegisters();
  let queries: Parity = 0;
  let weights: Parity = 0;
  let buffer: RingPlace = { index: 0, parity: 0 };

  function* wait(instruction: Instruction): WarpProgram {
    yield instruction;
    if (isaFences)
      yield { op: 'tcgen05.fence::after_thread_sync', site: 'MMA: fence after waiting' };
  }
  const awaitBuffer = (): Instruction =>
    waitFor(barriers.ringFull, buffer.index, buffer.parity, 'K/V full: MMA waits');
  const release = ({ index }: RingPlace, what: string): Instruction =>
    commitTo(plan, barriers.ringEmpty, index, `K/V empty: MMA releases ${what}`);
  const bufferAddress = (place: RingPlace): number => ringAddress(plan, place, place.parity);

  function* scores(stage: number): WarpProgram {
    yield* multiplyScores(plan, address.words[0], stage, bufferAddress(buffer));
    yield commitTo(plan, barriers.scoresFull, stage, 'S full: MMA commits');
  }

  function* output(stage: number, values: RingPlace, isFirst: boolean): WarpProgram {
    yield* wait(waitFor(barriers.weightsFull, stage, weights, 'P full, O rescaled: MMA waits'));
    const lastQuarter = wait(
      waitFor(barriers.weightsLast, stage, weights, 'P full, last quarter: MMA waits'),
    );
    yield* multiplyOutput(plan, address.words[0], {
      stage,
      values: bufferAddress(values),
      isFirst,
      lastQuarter,
    });
  }

  function* multiplyTile({ blocks }: WorkTile): WarpProgram {
    for (let stage = 0; stage < stages; stage++) {
      yield* wait(waitFor(barriers.queriesFull, stage, queries, 'Q full: MMA waits'));
      if (stage === 0) yield* wait(awaitBuffer());
      yield* scores(stage);
    }
    queries = flip(queries);
    yield release(buffer, 'K');
    buffer = advance(buffer, ring.mma);
    for (let i = 0; i < blocks - 1; i++) {
      yield* wait(awaitBuffer());
      const values = buffer;
      for (let stage = 0; stage < stages; stage++) {
        yield* output(stage, values, i === 0);
        if (stage === stages - 1) yield release(values, 'V');
        if (stage === 0) {
          buffer = advance(buffer, ring.mma);
          yield* wait(awaitBuffer());
        }
        yield* scores(stage);
      }
      yield release(buffer, 'K');
      buffer = advance(buffer, ring.mma);
      weights = flip(weights);
    }
    for (let stage = 0; stage < stages; stage++)
      yield commitTo(plan, barriers.queriesEmpty, stage, 'Q empty: MMA releases');
    yield* wait(awaitBuffer());
    for (let stage = 0; stage < stages; stage++) {
      yield* output(stage, buffer, blocks === 1);
      yield commitTo(plan, barriers.outputFull, stage, 'O full: MMA commits');
    }
    weights = flip(weights);
    yield release(buffer, 'V');
    buffer = advance(buffer, ring.mma);
  }

  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
  yield* allocateTensorMemory(context, address);
  if (place.cta === leader) for (const tile of tiles) yield* multiplyTile(tile);
  yield* freeTensorMemory(context, address);
}
