import type { BlockScaledKind } from '../../../hardware/index.js';
import {
  decodeInstructionDescriptor,
  decodeScaledDescriptor,
  type InstructionDescriptor,
  type MmaInstruction,
  type MmaKind,
} from '../../../machine/index.js';
import { blockOf, isBlockScaledKind } from '../block-scaling.js';
import { wrongOperands } from '../operands.js';
import type { AddressOperand, ResolvedOperand, Unsupported } from '../request.js';
import { wordAfter } from './modifiers.js';

/** K of one instruction: 32 bytes of A or B, or 32 elements of 4, 6 or 8 bits. Source: PTX ISA, "Matrix Shape". */
export const depths: Readonly<Record<MmaKind | BlockScaledKind, number>> = {
  f16: 16,
  tf32: 8,
  f8f6f4: 32,
  i8: 32,
  mxf8f6f4: 32,
  mxf4: 64,
  mxf4nvf4: 64,
};

/** The number formats of a kind; with scale factors, also their places and the number of elements that share one. */
export type NumbersOfKind =
  | { readonly isScaled: false; readonly kind: MmaKind }
  | {
      readonly isScaled: true;
      readonly kind: BlockScaledKind;
      readonly block: 16 | 32;
      readonly aScales: AddressOperand;
      readonly bScales: AddressOperand;
    };

/** The number formats of a kind, and the operands that follow them. */
export function numbersOf(
  modifiers: readonly string[],
  operands: readonly ResolvedOperand[],
): { readonly numbers: NumbersOfKind; readonly rest: readonly ResolvedOperand[] } | Unsupported {
  const name = wordAfter(modifiers, 'kind::') ?? '';
  const isScaled = modifiers.includes('block_scale');
  if (!(name in depths) || isScaled !== isBlockScaledKind(name))
    return { unsupported: `tcgen05.mma of kind ${name}${isScaled ? ' with scale factors' : ''}` };
  if (!isScaled) return { numbers: { isScaled, kind: name as MmaKind }, rest: operands };
  const kind = name as BlockScaledKind;
  const block = blockOf(kind, modifiers);
  if (typeof block === 'string') return { unsupported: block };
  const [aScales, bScales, ...rest] = operands;
  if (aScales?.kind !== 'address' || bScales?.kind !== 'address')
    return wrongOperands('[scales of A], [scales of B] after the instruction descriptor');
  return { numbers: { isScaled, kind, block, aScales, bScales }, rest };
}

/** A product without the places of its operands. */
export type DescribedProduct = Pick<
  MmaInstruction,
  'a' | 'b' | 'accumulator' | 'saturates' | 'scales' | 'negateA' | 'negateB'
> &
  Pick<InstructionDescriptor, 'aMajor' | 'bMajor' | 'm' | 'n'>;

/** The numbers of a description. */
export function numbersIn({
  a,
  b,
  accumulator,
  saturates,
  scales,
  negateA,
  negateB,
}: DescribedProduct) {
  return {
    a,
    b,
    negateA: negateA ?? false,
    negateB: negateB ?? false,
    accumulator: accumulator ?? 'fp32',
    saturates: saturates ?? false,
    ...(scales === undefined ? undefined : { scales }),
  };
}

/** The product that an instruction descriptor describes. Throws a RequestError for features that are not modelled. */
export function describedProduct(
  word: number,
  numbers: NumbersOfKind,
  addressOf: (operand: AddressOperand) => number,
): DescribedProduct {
  if (!numbers.isScaled) {
    return decodeInstructionDescriptor(word, numbers.kind);
  }
  const { kind, block, aScales, bScales } = numbers;
  const { scale, aScaleId, bScaleId, ...shape } = decodeScaledDescriptor(word, kind);
  return {
    ...shape,
    scales: {
      kind,
      block,
      format: scale,
      a: { address: addressOf(aScales), id: aScaleId },
      b: { address: addressOf(bScales), id: bScaleId },
    },
  };
}
