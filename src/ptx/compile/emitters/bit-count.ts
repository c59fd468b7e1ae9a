import {
  type Expression,
  highWords,
  i16x8,
  i32,
  i32x4,
  i64,
  i64x2,
  i8x16,
  lowWords,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onWords } from './emitter.js';

const lanes = [0, 1, 2, 3] as const;

/** Bits set in each word. */
function population(a: Expression): Expression {
  return i32x4.extaddPairwiseI16x8U(i16x8.extaddPairwiseI8x16U(i8x16.popcnt(a)));
}

/** Words that are computed one by one. */
function eachLane(word: (lane: number) => Expression): Expression {
  return lanes.reduce<Expression>(
    (vector, lane) => i32x4.replaceLane(vector, lane, word(lane)),
    i32x4.splat(0),
  );
}

function leadingZeros(a: Expression): Expression {
  return eachLane((lane) => i32.clz(i32x4.extractLane(a, lane)));
}

const counts: readonly Emitter[] = [
  onWords('popc.b32', 1, (_, a) => population(a)),
  {
    name: 'popc.b64',
    sources: 1,
    emit: (body, { vectors: [a, b] }) => {
      const [low, high] = [body.keep(population(a)), body.keep(population(b))];
      return [[i32x4.add(lowWords(low, high), highWords(low, high))]];
    },
  },
  onWords('clz.b32', 1, (_, a) => leadingZeros(a)),
  {
    name: 'clz.b64',
    sources: 1,
    emit: (_, { vectors }) => [
      [eachLane((lane) => i32.wrapI64(i64.clz(i64x2.extractLane(vectors[lane >> 1], lane & 1))))],
    ],
  },
];

/** The position of the highest bit that differs from the sign, or its distance from the top; −1 where there is none. */
const finds: readonly Emitter[] = [
  { type: 'u32', differing: (a: Expression) => a },
  { type: 's32', differing: (a: Expression) => v128.xor(a, i32x4.shrS(a, 31)) },
].flatMap(({ type, differing }): Emitter[] => [
  onWords(`bfind.${type}`, 1, (body, a) =>
    i32x4.sub(i32x4.splat(31), leadingZeros(body.keep(differing(a)))),
  ),
  onWords(`bfind.shiftamt.${type}`, 1, (body, a) => {
    const bits = body.keep(differing(a));
    return v128.or(leadingZeros(bits), i32x4.eq(bits, i32x4.splat(0)));
  }),
]);

/** The numbers from 0 to 15 with their four bits reversed, a byte each. */
const turnedNibbles = i32x4.of([0x0c040800, 0x0e060a02, 0x0d050901, 0x0f070b03]);
const nibbleMask = i32x4.splat(0x0f0f0f0f);

/** Bytes with their bits reversed. */
function turnedBytes(a: Expression): Expression {
  const low = i8x16.swizzle(turnedNibbles, v128.and(a, nibbleMask));
  const high = i8x16.swizzle(turnedNibbles, v128.and(i32x4.shrU(a, 4), nibbleMask));
  return v128.or(i32x4.shl(low, 4), high);
}

function bytesTurned(a: Expression, size: 4 | 8): Expression {
  const order = Array.from({ length: 16 }, (_, i) => (i & ~(size - 1)) + size - 1 - (i % size));
  return i8x16.shuffle(a, a, order);
}

const reversals: readonly Emitter[] = [
  onWords('brev.b32', 1, (body, a) => bytesTurned(body.keep(turnedBytes(a)), 4)),
  {
    name: 'brev.b64',
    sources: 1,
    emit: (body, { vectors }) => [
      vectors.map((vector) => bytesTurned(body.keep(turnedBytes(vector)), 8)),
    ],
  },
];

/** Counting, finding and reversing bits. */
export const bitCountEmitters: readonly Emitter[] = [...counts, ...finds, ...reversals];
