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

/** The products of tiles that the MMA warp issues. */
class TileProducts {
  readonly address = tensorAddressRegisters();
  readonly #plan: ProgramPlan;
  #queries: Parity = 0;
  #weights: Parity = 0;
  #buffer: RingPlace = { index: 0, parity: 0 };

  constructor(plan: ProgramPlan) {
    this.#plan = plan;
  }

  /** S and O of a tile. */
  *multiplyTile({ blocks }: WorkTile): WarpProgram {
    const plan = this.#plan;
    const { barriers, ring, stages } = plan;
    for (let stage = 0; stage < stages; stage++) {
      yield* this.#wait(waitFor(barriers.queriesFull, stage, this.#queries, 'Q full: MMA waits'));
      if (stage === 0) yield* this.#wait(this.#awaitBuffer());
      yield* this.#scores(stage);
    }
    this.#queries = flip(this.#queries);
    yield this.#release(this.#buffer, 'K');
    this.#buffer = advance(this.#buffer, ring.mma);
    for (let i = 0; i < blocks - 1; i++) {
      yield* this.#wait(this.#awaitBuffer());
      const values = this.#buffer;
      for (let stage = 0; stage < stages; stage++) {
        yield* this.#output(stage, values, i === 0);
        if (stage === stages - 1) yield this.#release(values, 'V');
        if (stage === 0) {
          this.#buffer = advance(this.#buffer, ring.mma);
          yield* this.#wait(this.#awaitBuffer());
        }
        yield* this.#scores(stage);
      }
      yield this.#release(this.#buffer, 'K');
      this.#buffer = advance(this.#buffer, ring.mma);
      this.#weights = flip(this.#weights);
    }
    for (let stage = 0; stage < stages; stage++)
      yield commitTo(plan, barriers.queriesEmpty, stage, 'Q empty: MMA releases');
    yield* this.#wait(this.#awaitBuffer());
    for (let stage = 0; stage < stages; stage++) {
      yield* this.#output(stage, this.#buffer, blocks === 1);
      yield commitTo(plan, barriers.outputFull, stage, 'O full: MMA commits');
    }
    this.#weights = flip(this.#weights);
    yield this.#release(this.#buffer, 'V');
    this.#buffer = advance(this.#buffer, ring.mma);
  }

  *#wait(instruction: Instruction): WarpProgram {
    yield instruction;
    if (this.#plan.isaFences)
      yield { op: 'tcgen05.fence::after_thread_sync', site: 'MMA: fence after waiting' };
  }
  #awaitBuffer(): Instruction {
    const { index, parity } = this.#buffer;
    return waitFor(this.#plan.barriers.ringFull, index, parity, 'K/V full: MMA waits');
  }

  #release({ index }: RingPlace, what: string): Instruction {
    const plan = this.#plan;
    return commitTo(plan, plan.barriers.ringEmpty, index, `K/V empty: MMA releases ${what}`);
  }

  #bufferAddress(place: RingPlace): number {
    return ringAddress(this.#plan, place, place.parity);
  }

  *#scores(stage: number): WarpProgram {
    const plan = this.#plan;
    yield* multiplyScores(plan, this.address.words[0], stage, this.#bufferAddress(this.#buffer));
    yield commitTo(plan, plan.barriers.scoresFull, stage, 'S full: MMA commits');
  }

  *#output(stage: number, values: RingPlace, isFirst: boolean): WarpProgram {
    const plan = this.#plan;
    const { barriers } = plan;
    yield* this.#wait(
      waitFor(barriers.weightsFull, stage, this.#weights, 'P full, O rescaled: MMA waits'),
    );
    const lastQuarter = this.#wait(
      waitFor(barriers.weightsLast, stage, this.#weights, 'P full, last quarter: MMA waits'),
    );
    yield* multiplyOutput(plan, this.address.words[0], {
      stage,
      values: this.#bufferAddress(values),
      isFirst,
      lastQuarter,
    });
  }
}

/**
 * The warp that issues the MMAs: S of both stages first, then for every block P·V and the next S in
 * turn. In a pair of CTAs the leader issues for both. Source: `mma` in flash_fwd_sm100.py.
 */
export function* mmaWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles } = context;
  const products = new TileProducts(plan);
  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
  yield* allocateTensorMemory(context, products.address);
  if (place.cta === leader) for (const tile of tiles) yield* products.multiplyTile(tile);
  yield* freeTensorMemory(context, products.address);
}
