import { type IntegerType, integerTypes, type LaneInstruction } from '../../../isa/index.js';
import { type IntegerFunction, integerRow } from './integer-row.js';
import type { FamilyFacts } from './row.js';

const { pred, b16, b32, b64, u16, u32, u64, s16, s32, s64 } = integerTypes;
const bitTypes: readonly IntegerType[] = [b16, b32, b64];

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'confirmed',
    unit: 'alu',
    evidence: 'isa',
    source: `PTX ISA, Logic and Shift Instructions: ${instruction}`,
  };
}

const operations: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

function unary(type: IntegerType, compute: (a: bigint) => bigint): IntegerFunction {
  return { result: type, sources: [type], compute };
}

const logic = [...bitTypes, pred].flatMap((type) => [
  ...Object.entries(operations).map(([opcode, compute]) =>
    integerRow(
      `${opcode}.${type.name}`,
      { result: type, sources: [type, type], compute },
      facts(opcode),
    ),
  ),
  integerRow(
    `not.${type.name}`,
    unary(type, (a) => ~a),
    facts('not'),
  ),
]);

const cnot = bitTypes.map((type) =>
  integerRow(
    `cnot.${type.name}`,
    unary(type, (a) => (a === 0n ? 1n : 0n)),
    facts('cnot'),
  ),
);

/** A shift; the amount has 32 bits for any type, and is clamped to the type's bits. */
function shift(
  opcode: 'shl' | 'shr',
  type: IntegerType,
  compute: (a: bigint, amount: bigint) => bigint,
): LaneInstruction {
  const most = BigInt(type.bits);
  return integerRow(
    `${opcode}.${type.name}`,
    {
      result: type,
      sources: [type, u32],
      compute: (a, amount) => compute(a, amount < most ? amount : most),
    },
    facts(opcode),
  );
}

const shifts = [
  ...bitTypes.map((type) => shift('shl', type, (a, amount) => a << amount)),
  ...[...bitTypes, u16, u32, u64, s16, s32, s64].map((type) =>
    shift('shr', type, (a, amount) => a >> amount),
  ),
];

/** Logic of 16, 32 and 64 bits and of predicates; shifts, whose amounts are clamped to the type's bits. */
export const logicInstructions: readonly LaneInstruction[] = [...logic, ...cnot, ...shifts];
