import type { Evidence, LaneValue } from './instruction.js';
import { type Row, row } from './row.js';
import { onEachVector, type SourceValue, type Vectors } from './vectors/index.js';
import {
  type Expression,
  highWords,
  i32x4,
  interleaveHigh,
  interleaveLow,
  lowWords,
  v128,
} from './webassembly/index.js';

const common = {
  meaning: 'moves',
  unit: 'alu',
  section: 'Data Movement and Conversion Instructions',
} as const;

const copies = row({
  ...common,
  syntax: 'mov.type d, a',
  alternatives: {
    type: [
      ...['.b32', '.u32', '.s32', '.f32', '.pred', '.b16', '.u16', '.s16'],
      ...['.b64', '.u64', '.s64', '.f64', '.b128'],
    ],
  },
  evaluate: () => (value: LaneValue) => value,
  emit: () => onEachVector((_, a) => a),
  isOfMachine: ({ type }) => type === 'pred' || type.endsWith('32'),
  evidence: ({ type }) => (type === 'b128' ? 'isa' : 'silicon'),
});

/** Bits of an element; elements of 8 bits lie in registers of 16. */
type ElementBits = 8 | 16 | 32 | 64;

/** Two elements as one of twice the width. */
function joined(bits: ElementBits, low: Vectors, high: Vectors): Vectors {
  if (bits === 64) return [...low, ...high];
  if (bits === 32) return [interleaveLow(low[0], high[0]), interleaveHigh(low[0], high[0])];
  return [v128.or(low[0], i32x4.shl(high[0], bits))];
}

/** The low and the high half of an element. */
function halved(bits: ElementBits, [a, b, c, d]: Vectors): readonly [Vectors, Vectors] {
  if (bits === 64)
    return [
      [a, b],
      [c, d],
    ];
  if (bits === 32) return [[lowWords(a, b)], [highWords(a, b)]];
  return [[v128.and(a, i32x4.splat(2 ** bits - 1))], [i32x4.shrU(a, bits)]];
}

function packed(elements: readonly Vectors[], bits: ElementBits): Vectors {
  if (elements.length === 1) return elements[0];
  const pairs = Array.from({ length: elements.length / 2 }, (_, i) =>
    joined(bits, elements[2 * i], elements[2 * i + 1]),
  );
  return packed(pairs, (2 * bits) as ElementBits);
}

/**
 * The elements of a register.
 *
 * @param keep makes an expression cheap to write twice
 */
function unpacked(
  whole: Vectors,
  bits: number,
  count: number,
  keep: (expression: Expression) => Expression,
): readonly Vectors[] {
  if (count === 1) return [whole];
  const half = (bits / 2) as ElementBits;
  return halved(half, whole).flatMap((part) =>
    unpacked(count === 2 ? part : part.map(keep), half, count / 2, keep),
  );
}

/** Sources of `mov.….packN`; for elements of 8 bits the low bits of their registers count. */
function elementsOf(sources: readonly SourceValue[], bits: ElementBits): Vectors[] {
  return sources.map(({ vectors }) =>
    bits === 8 ? [v128.and(vectors[0], i32x4.splat(0xff))] : vectors,
  );
}

function valueOf(bits: number, pattern: bigint): LaneValue {
  const low = BigInt.asUintN(bits, pattern);
  return bits > 32 ? low : Number(low);
}

/** `mov` between a register and a vector of its elements, the lowest first. */
function elementRows(bits: 16 | 32 | 64 | 128, count: 2 | 4, evidence: Evidence): Row[] {
  const elementBits = (bits / count) as ElementBits;
  const names = ['a', 'b', 'c', 'e'].slice(0, count);
  const operands = Object.fromEntries(names.map((name) => [name, `b${Math.max(elementBits, 16)}`]));
  return [
    row({
      ...common,
      syntax: `mov.b${bits}.pack${count} d, ${names.join(', ')}` as string,
      operands,
      evaluate:
        () =>
        (...values: LaneValue[]) =>
          valueOf(
            bits,
            values.reduce<bigint>(
              (whole, value, i) =>
                whole | (BigInt.asUintN(elementBits, BigInt(value)) << BigInt(i * elementBits)),
              0n,
            ),
          ),
      emit:
        () =>
        (_, ...sources) => [packed(elementsOf(sources, elementBits), elementBits)],
      evidence,
    }),
    row({
      ...common,
      syntax: `mov.b${bits}.unpack${count} ${names.join('|')}, s` as string,
      operands,
      evaluate: () => (value: LaneValue) =>
        names.map((_, i) => valueOf(elementBits, BigInt(value) >> BigInt(i * elementBits))),
      emit:
        () =>
        (body, { vectors }) =>
          unpacked(vectors, bits, count, body.keep),
      evidence,
    }),
  ];
}

/** Copies, and `mov` between a register and its elements; elements of 8 bits lie in a register of 16. */
export const moveRows: readonly Row[] = [
  copies,
  ...elementRows(16, 2, 'isa'),
  ...elementRows(32, 2, 'silicon'),
  ...elementRows(32, 4, 'isa'),
  ...elementRows(64, 2, 'silicon'),
  ...elementRows(64, 4, 'silicon'),
  ...elementRows(128, 2, 'isa'),
  ...elementRows(128, 4, 'isa'),
];
