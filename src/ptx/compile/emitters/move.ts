import type { RegisterWidth } from '../../instructions/index.js';
import {
  type Expression,
  highWords,
  i32x4,
  i64x2,
  interleaveHigh,
  interleaveLow,
  lowWords,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onEachVector, onWords, type SourceValue, type Vectors } from './emitter.js';

const scalarTypes = ['b', 'u', 's', 'f'].flatMap((kind) =>
  (kind === 'f' ? [32, 64] : [16, 32, 64]).map((bits) => ({ kind, bits })),
);

const copies: readonly Emitter[] = [
  ...scalarTypes.map(({ kind, bits }) => `${kind}${bits}`),
  ...['b128', 'pred'],
].map((type) => onEachVector(`mov.${type}`, 1, (_, a) => a));

/** `d = predicate ? a : b`. */
const selections: readonly Emitter[] = scalarTypes.map(({ kind, bits }) =>
  bits < 64
    ? onWords(`selp.${kind}${bits}`, 3, (_, a, b, p) => v128.bitselect(a, b, p))
    : {
        name: `selp.${kind}${bits}`,
        sources: 3,
        emit: (_, a, b, { vectors: [p] }) => [
          [i64x2.extendLowI32x4S(p), i64x2.extendHighI32x4S(p)].map((mask, i) =>
            v128.bitselect(a.vectors[i], b.vectors[i], mask),
          ),
        ],
      },
);

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

const packings: readonly { readonly bits: RegisterWidth & number; readonly counts: number[] }[] = [
  { bits: 16, counts: [2] },
  { bits: 32, counts: [2, 4] },
  { bits: 64, counts: [2, 4] },
  { bits: 128, counts: [2, 4] },
];

/** `mov` between a register and a vector of its elements, the lowest first. */
const elements: readonly Emitter[] = packings.flatMap(({ bits, counts }) =>
  counts.flatMap((count): Emitter[] => {
    const elementBits = (bits / count) as ElementBits;
    return [
      {
        name: `mov.b${bits}.pack${count}`,
        sources: count,
        emit: (_, ...sources) => [packed(elementsOf(sources, elementBits), elementBits)],
      },
      {
        name: `mov.b${bits}.unpack${count}`,
        sources: 1,
        emit: (body, { vectors }) => unpacked(vectors, bits, count, body.keep),
      },
    ];
  }),
);

/** Copies, selections, and elements of registers. */
export const moveEmitters: readonly Emitter[] = [...copies, ...selections, ...elements];
