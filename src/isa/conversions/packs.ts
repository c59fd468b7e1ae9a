import { type Row, row } from '../row.js';
import { type IntegerType, saturate } from '../values/integer-type.js';
import { joined, pairFacts } from './pair-formats.js';

/** An integer clamped to a type's range; its low bits. */
function cut(type: string, word: number): number {
  const bits = bitsOf(type);
  const integers = { name: type, bits, isSigned: type.startsWith('s') } as IntegerType;
  return Number(BigInt.asUintN(bits, saturate(integers, BigInt(word | 0))));
}

function bitsOf(type: string): number {
  return Number(type.slice(1));
}

const common = { ...pairFacts, evidence: 'silicon' } as const;

/** `cvt.pack`: the two integers in the lowest places; the contents of c move up. */
export const packRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'cvt.pack.sat.ctype.s32 d, a, b',
    alternatives: { ctype: ['.u16', '.s16'] },
    operands: { d: 'b32' },
    evaluate:
      ({ ctype }) =>
      (a: number, b: number) =>
        joined(cut(ctype, a), cut(ctype, b), 16),
  }),
  row({
    ...common,
    syntax: 'cvt.pack.sat.ctype.s32.b32 d, a, b, c',
    alternatives: { ctype: ['.u8', '.s8', '.u4', '.s4', '.u2', '.s2'] },
    operands: { d: 'b32' },
    evaluate: ({ ctype }) => {
      const bits = bitsOf(ctype);
      return (a: number, b: number, c: number) =>
        ((c << (2 * bits)) | (cut(ctype, a) << bits) | cut(ctype, b)) >>> 0;
    },
  }),
];
