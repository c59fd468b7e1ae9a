import {
  splitClusterAddress,
  type CtaGroup,
  type Instruction,
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
import { numberAfter } from './modifiers.js';
import {
  depths,
  type DescribedProduct,
  describedProduct,
  numbersIn,
  numbersOf,
  type NumbersOfKind,
} from './product-kinds.js';

/** `collector::` allows the hardware to keep A or B; it may read them again all the same, so this changes nothing here. */
const forms =
  /^(mma|ws|cta_group::[12]|kind::.*|collector::(a|b[0-3])::.*|block_scale|scale_vec::.*|block(16|32))$/;

/** Operands of a product, as in the text. */
interface ProductOperands {
  readonly group: CtaGroup;
  /** `.ws`. */
  readonly isWeightStationary: boolean;
  readonly d: AddressOperand;
  readonly a: ResolvedOperand;
  readonly b: ResolvedOperand;
  readonly descriptor: ResolvedOperand;
  /** Whether D is added. */
  readonly accumulates: ResolvedOperand;
  /** disable-output-lane: a bit for each lane of D. */
  readonly leftOut: readonly ResolvedOperand[];
  readonly numbers: NumbersOfKind;
}

function lowerProduct(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands } = request;
  const other = modifiers.find((modifier) => !forms.test(modifier));
  if (other !== undefined) return { unsupported: `products with .${other}` };
  const [d, a, b, descriptor, ...others] = operands;
  const found = numbersOf(modifiers, others);
  if ('unsupported' in found) return found;
  const { numbers, rest } = found;
  const [first] = rest;
  const leftOut = first?.kind === 'vector' ? first.elements : [];
  const [accumulates, ...scale] = first?.kind === 'vector' ? rest.slice(1) : rest;
  const isWeightStationary = modifiers.includes('ws');
  if (scale.length > 0)
    return {
      unsupported: isWeightStationary ? 'a mask of zero columns' : 'products that scale D',
    };
  if (d?.kind !== 'address' || accumulates === undefined)
    return wrongOperands('[D], A, B, an instruction descriptor, a predicate');
  const group = numberAfter(modifiers, 'cta_group::') === 2 ? 2 : 1;
  if (![0, 4 * group].includes(leftOut.length))
    return wrongOperands(`${4 * group} masks of the lanes that are left out`);
  const product: ProductOperands = {
    group,
    isWeightStationary,
    d,
    a,
    b,
    descriptor,
    accumulates,
    leftOut,
    numbers,
  };
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

/** The product that one lane issues, or the fault of its descriptors. */
function productOf(
  warp: IssuingWarp,
  product: ProductOperands,
  lane: number,
  site: string,
): Instruction {
  const wrong = (message: string): Instruction => ({
    op: 'report',
    kind: 'instruction-shape',
    message,
    site,
  });
  const { group, isWeightStationary, d, a, b, descriptor, accumulates, leftOut, numbers } = product;
  const number = (operand: ResolvedOperand) => operandNumber(warp.registers, operand, lane);
  const addressOf = (operand: AddressOperand) =>
    laneAddresses(warp.registers, operand, warp.lanes)[lane];
  let shape: DescribedProduct;
  try {
    shape = describedProduct(number(descriptor) | 0, numbers, addressOf);
  } catch (error) {
    if (error instanceof RequestError) return wrong(error.message);
    throw error;
  }
  const { aMajor, bMajor, m, n } = shape;
  const bDescriptor = matrixDescriptorOf(warp, b, lane, bMajor);
  if (!bDescriptor.ok) return wrong(bDescriptor.violation.message);
  let aOperand: MmaOperand;
  if (a.kind === 'address') aOperand = { space: 'tensor', address: addressOf(a) };
  else {
    const aDescriptor = matrixDescriptorOf(warp, a, lane, aMajor);
    if (!aDescriptor.ok) return wrong(aDescriptor.violation.message);
    aOperand = { space: 'shared', descriptor: aDescriptor.descriptor };
  }
  return {
    ...numbersIn(shape),
    op: 'tcgen05.mma',
    group,
    isWeightStationary,
    shape: { m, n, k: depths[numbers.kind] },
    d: addressOf(d),
    aOperand,
    bOperand: bDescriptor.descriptor,
    accumulate: number(accumulates) !== 0,
    ...(leftOut.length === 0 ? undefined : { lanesLeftOut: leftOut.map(number) }),
    names: { a: 'A', b: 'B', d: 'D' },
    site,
  };
}

/**
 * tcgen05.commit. An address without a state space counts as one of shared memory where it lies below all windows:
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
  { name: 'tcgen05.mma', meaning: 'is', evidence: 'published', source, lower: lowerProduct },
  { name: 'tcgen05.commit', meaning: 'none', evidence: 'isa', source, lower: lowerCommit },
];
