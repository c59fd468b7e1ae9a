import {
  type Instruction,
  type MatrixDescriptor,
  type SwizzleMode,
  type WarpgroupShape,
} from '../../../machine/index.js';
import {
  integerConstant,
  slotsOf,
  uniformNumber,
  vectorSlots,
  wrongOperands,
} from '../operands.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { Slot } from '../slot.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { lowestLane, operandBits } from '../warp-registers.js';

const source =
  'PTX ISA, Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions; arithmetic: captures of an H200';

const formats: Readonly<Record<string, WarpgroupShape['a']>> = {
  f16: 'fp16',
  bf16: 'bf16',
  tf32: 'tf32',
  e4m3: 'e4m3',
  e5m2: 'e5m2',
  s8: 's8',
  u8: 'u8',
};
const accumulators: Readonly<Record<string, WarpgroupShape['accumulator']>> = {
  f32: 'fp32',
  f16: 'fp16',
  s32: 's32',
};

/** Swizzling by bits 62 and 63 of a descriptor. Source: PTX ISA, "Matrix Descriptor Format" of wgmma. */
const swizzles: readonly SwizzleMode[] = ['none', '128B', '64B', '32B'];

/** A matrix descriptor of wgmma: byte fields divided by 16 in bits 0, 16 and 32. */
function descriptorOf(word: bigint, isTransposed: boolean): MatrixDescriptor {
  const field = (bit: bigint): number => 16 * Number((word >> bit) & 0x3fffn);
  return {
    address: field(0n),
    leadingByteOffset: field(16n),
    strideByteOffset: field(32n),
    swizzle: swizzles[Number(word >> 62n)],
    major: isTransposed ? 'mn' : 'k',
  };
}

/** The registers of a fragment; null for a single register, which holds a descriptor. */
function fragmentSlots(operand: ResolvedOperand | undefined): readonly Slot[] | null {
  return operand?.kind === 'vector' ? vectorSlots(operand) : null;
}

/** The shape and formats that the modifiers state: `m64n64k16.f32.bf16.bf16`. */
function shapeOf(modifiers: readonly string[]): WarpgroupShape | null {
  const [shape, ...rest] = modifiers.slice(3);
  const n = /^m64n(\d+)k\d+$/.exec(shape ?? '');
  const saturates = rest.includes('satfinite');
  const [d, a, b] = rest.filter((modifier) => modifier !== 'satfinite');
  if (n === null || !(d in accumulators) || !(a in formats) || !(b in formats)) return null;
  return { a: formats[a], b: formats[b], accumulator: accumulators[d], n: Number(n[1]), saturates };
}

function lowerMma(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  if (modifiers[1] !== 'sync' || modifiers[2] !== 'aligned') return wrongOperands('.sync.aligned');
  const shape = shapeOf(modifiers);
  if (shape === null)
    return {
      unsupported: 'a shape and formats of wgmma.mma_async (no sparse and no one-bit form)',
    };
  const [destination, left, right, scale, ...immediates] = operands;
  const d = fragmentSlots(destination);
  const a = fragmentSlots(left);
  const perLane = shape.n / (shape.accumulator === 'fp16' ? 4 : 2);
  if (d === null || right === undefined || d.length !== perLane)
    return wrongOperands(`${perLane} registers of D, A, the descriptor of B, scale-d`);
  if (a !== null && a.length !== 4) return wrongOperands('four registers of A');
  const [scaleA, scaleB, ...transposes] = immediates.map(integerConstant);
  const [transposeA, transposeB] = a === null ? transposes : [0, ...transposes];
  if ([scaleA, scaleB, transposeA, transposeB].includes(null))
    return wrongOperands('immediates of scale and transpose');
  return {
    isAligned: true,
    writes: [],
    reads: slotsOf([right, ...(a === null ? [left] : []), ...(scale === undefined ? [] : [scale])]),
    lends: a === null ? [d] : [d, a],
    issue: function* (warp) {
      const { registers, lanes } = warp;
      const lane = lowestLane(lanes);
      const word = (operand: ResolvedOperand): bigint => operandBits(registers, operand, lane);
      const unfenced = warp.registerFences.multiply(d, a ?? [], modifiers[3]);
      if (unfenced !== null) yield { op: 'report', kind: 'race', message: unfenced, site };
      yield {
        op: 'wgmma.mma_async',
        ...shape,
        accumulate: scale === undefined || uniformNumber(warp, scale) !== 0,
        negateA: scaleA === -1,
        negateB: scaleB === -1,
        aOperand:
          a === null
            ? { space: 'shared', descriptor: descriptorOf(word(left), transposeA === 1) }
            : { space: 'registers', fragment: warp.lend(a) },
        bOperand: descriptorOf(word(right), transposeB === 1),
        d: warp.lend(d),
        site,
      };
    },
  };
}

function simple(
  name: string,
  make: (warp: IssuingWarp, site: string) => Instruction,
): VisibleInstruction {
  return {
    name,
    meaning: 'none',
    evidence: 'isa',
    source,
    lower: ({ site }) => ({
      isAligned: true,
      writes: [],
      reads: [],
      lends: [],
      issue: function* (warp) {
        yield make(warp, site);
      },
    }),
  };
}

/** Hopper's MMA of a warpgroup, its fence and its groups. */
export const wgmmaInstructions: readonly VisibleInstruction[] = [
  { name: 'wgmma.mma_async', meaning: 'is', evidence: 'silicon', source, lower: lowerMma },
  simple('wgmma.fence', ({ registerFences }, site) => ({
    op: 'wgmma.fence',
    onExecution: registerFences.fence,
    site,
  })),
  simple('wgmma.commit_group', (_, site) => ({ op: 'wgmma.commit_group', site })),
  {
    name: 'wgmma.wait_group',
    meaning: 'none',
    evidence: 'isa',
    source,
    lower: ({ operands, site }) => {
      const pending = integerConstant(operands[0]);
      if (operands.length !== 1 || pending === null) return wrongOperands('a number of groups');
      return {
        isAligned: true,
        writes: [],
        reads: [],
        lends: [],
        issue: function* () {
          yield { op: 'wgmma.wait_group', pending, site };
        },
      };
    },
  },
];
