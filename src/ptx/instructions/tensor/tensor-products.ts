import {
  decodeInstructionDescriptor,
  splitClusterAddress,
  type CtaGroup,
  type Instruction,
  type InstructionDescriptor,
  type MmaKind,
  type MmaOperand,
} from '../../../machine/index.js';
import { RequestError } from '../../../request-error.js';
import { slotsOf, wrongOperands } from '../operands.js';
import { ranksOf, sharedAddresses } from '../shared-addresses.js';
import type {
  AddressOperand,
  InstructionRequest,
  ResolvedOperand,
  Unsupported,
} from '../request.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, laneAddresses, operandNumber } from '../warp-registers.js';
import { matrixDescriptorOf } from './descriptors.js';
import { numberAfter, wordAfter } from './modifiers.js';

const kinds: readonly MmaKind[] = ['f16', 'tf32', 'f8f6f4'];

/** K of one instruction: 32 bytes of A or B, or 32 elements of 4, 6 or 8 bits. Source: PTX ISA, "Matrix Shape". */
const depths: Readonly<Record<MmaKind, number>> = { f16: 16, tf32: 8, f8f6f4: 32 };

const forms = /^(mma|cta_group::[12]|kind::.*|collector::.*)$/;

/** Operands of a product, as they stand in the text. */
interface ProductOperands {
  readonly group: CtaGroup;
  readonly kind: MmaKind;
  readonly d: AddressOperand;
  readonly a: ResolvedOperand;
  readonly b: ResolvedOperand;
  readonly descriptor: ResolvedOperand;
  /** Whether D is added. */
  readonly accumulates: ResolvedOperand;
  /** disable-output-lane: a bit for each lane of D; only masks that leave none out are modelled. */
  readonly leftOut: readonly ResolvedOperand[];
}

function lowerProduct(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands } = request;
  const other = modifiers.find((modifier) => !forms.test(modifier));
  if (other !== undefined) return { unsupported: `products with .${other}` };
  const kind = kinds.find((one) => one === wordAfter(modifiers, 'kind::'));
  if (kind === undefined)
    return { unsupported: `tcgen05.mma of kind ${wordAfter(modifiers, 'kind::')}` };
  const [d, a, b, descriptor, ...rest] = operands;
  const [first] = rest;
  const leftOut = first?.kind === 'vector' ? first.elements : [];
  const [accumulates, ...scale] = first?.kind === 'vector' ? rest.slice(1) : rest;
  if (scale.length > 0) return { unsupported: 'products that scale D' };
  if (d?.kind !== 'address' || accumulates === undefined)
    return wrongOperands('[D], A, B, an instruction descriptor, a predicate');
  const group = numberAfter(modifiers, 'cta_group::') === 2 ? 2 : 1;
  const product: ProductOperands = { group, kind, d, a, b, descriptor, accumulates, leftOut };
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      for (let lane = 0; lane < 32; lane++)
        if (hasLane(warp.lanes, lane)) yield productOf(warp, product, lane, request.site);
    },
  };
}

/** The product that one lane issues, or what is wrong with its descriptors. */
function productOf(
  warp: IssuingWarp,
  { group, kind, d, a, b, descriptor, accumulates, leftOut }: ProductOperands,
  lane: number,
  site: string,
): Instruction {
  const wrong = (message: string): Instruction => ({
    op: 'report',
    kind: 'instruction-shape',
    message,
    site,
  });
  const number = (operand: ResolvedOperand) => operandNumber(warp.registers, operand, lane);
  if (leftOut.some((mask) => number(mask) !== 0))
    return wrong('products that leave lanes of D out (disable-output-lane) are not modelled');
  let shape: InstructionDescriptor;
  try {
    shape = decodeInstructionDescriptor(number(descriptor) | 0, kind);
  } catch (error) {
    if (error instanceof RequestError) return wrong(error.message);
    throw error;
  }
  if (shape.accumulator !== 'fp32')
    return wrong(`an accumulator of ${shape.accumulator}, which is not modelled`);
  const bDescriptor = matrixDescriptorOf(warp, b, lane, shape.bMajor);
  if (!bDescriptor.ok) return wrong(bDescriptor.violation.message);
  let aOperand: MmaOperand;
  if (a.kind === 'address')
    aOperand = { space: 'tensor', address: laneAddresses(warp.registers, a, warp.lanes)[lane] };
  else {
    const aDescriptor = matrixDescriptorOf(warp, a, lane, shape.aMajor);
    if (!aDescriptor.ok) return wrong(aDescriptor.violation.message);
    aOperand = { space: 'shared', descriptor: aDescriptor.descriptor };
  }
  return {
    op: 'tcgen05.mma',
    group,
    a: shape.a,
    b: shape.b,
    shape: { m: shape.m, n: shape.n, k: depths[kind] },
    d: laneAddresses(warp.registers, d, warp.lanes)[lane],
    aOperand,
    bOperand: bDescriptor.descriptor,
    accumulate: number(accumulates) !== 0,
    negateA: shape.negateA,
    negateB: shape.negateB,
    names: { a: 'A', b: 'B', d: 'D' },
    site,
  };
}

/**
 * tcgen05.commit. An address without a state space is taken for one of shared memory where it lies below all windows:
 * compilers pass such addresses extended to 64 bits.
 */
function lowerCommit(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [barrier, mask] = operands;
  if (barrier?.kind !== 'address') return wrongOperands('[mbarrier]');
  const group = numberAfter(modifiers, 'cta_group::') === 2 ? 2 : 1;
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      const addresses = laneAddresses(warp.registers, barrier, warp.lanes);
      for (let lane = 0; lane < 32; lane++) {
        if (!hasLane(warp.lanes, lane)) continue;
        const alone = { ...warp, lanes: (1 << lane) >>> 0 };
        const isShared = addresses[lane] < 2 ** 32;
        const space = isShared ? { modifiers: ['shared::cluster'] } : { modifiers };
        const [{ address }] = sharedAddresses(alone, space, barrier);
        const { rank, offset } = splitClusterAddress(address);
        const ranks =
          mask === undefined ? [rank] : ranksOf(operandNumber(warp.registers, mask, lane));
        yield { op: 'tcgen05.commit', group, barrier: offset, ctas: ranks, site };
      }
    },
  };
}

const source = 'PTX ISA, TensorCore 5th Generation Instructions';

/** Products of the fifth generation's tensor core, and their completion. */
export const tensorProductRows: readonly VisibleInstruction[] = [
  { name: 'tcgen05.mma', evidence: 'published', source, lower: lowerProduct },
  { name: 'tcgen05.commit', evidence: 'isa', source, lower: lowerCommit },
];
