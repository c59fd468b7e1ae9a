import { low16 } from '../../../isa/vectors/index.js';
import {
  type Expression,
  type FunctionBody,
  i32x4,
  i64x2,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onEachVector, onWords, type VectorFunction } from './emitter.js';

const bitTypes = ['b16', 'b32', 'b64', 'pred'];

const bitwise: readonly Emitter[] = bitTypes.flatMap((type): Emitter[] => [
  onEachVector(`and.${type}`, 2, (_, a, b) => v128.and(a, b)),
  onEachVector(`or.${type}`, 2, (_, a, b) => v128.or(a, b)),
  onEachVector(`xor.${type}`, 2, (_, a, b) => v128.xor(a, b)),
]);

const complements: readonly Emitter[] = [
  onWords('not.b16', 1, (_, a) => low16(v128.not(a))),
  onWords('not.b32', 1, (_, a) => v128.not(a)),
  onWords('not.pred', 1, (_, a) => v128.not(a)),
  onEachVector('not.b64', 1, (_, a) => v128.not(a)),
];

const counted: readonly Emitter[] = [
  onWords('cnot.b16', 1, (_, a) => isZero(a)),
  onWords('cnot.b32', 1, (_, a) => isZero(a)),
  onEachVector('cnot.b64', 1, (_, a) => i64x2.neg(i64x2.eq(a, i64x2.splat(0n)))),
];

/** 1 where the word is 0, else 0. */
function isZero(a: Expression): Expression {
  return i32x4.neg(i32x4.eq(a, i32x4.splat(0)));
}

/**
 * A function of three bits as an expression of words: a's bit chooses one of two functions of b and c, and in each of
 * these b's bit chooses one of two functions of c.
 *
 * @param table bit 4a + 2b + c is the function's value
 */
function ofThreeBits(table: number, a: Expression, b: Expression, c: Expression): Expression {
  const ofOne = (entries: number): Expression =>
    [i32x4.splat(0), v128.not(c), c, i32x4.splat(-1)][entries & 3];
  const ofTwo = (entries: number): Expression => {
    const [low, high] = [entries & 3, (entries >> 2) & 3];
    if (low === high) return ofOne(low);
    if (low === 0) return high === 3 ? b : v128.and(ofOne(high), b);
    if (high === 0) return low === 3 ? v128.not(b) : v128.andnot(ofOne(low), b);
    if ((low ^ high) === 3 && low !== 3) return v128.xor(low === 1 ? v128.not(c) : c, b);
    return v128.bitselect(ofOne(high), ofOne(low), b);
  };
  const [low, high] = [table & 0xf, (table >> 4) & 0xf];
  if (low === high) return ofTwo(low);
  if (low === 0) return high === 0xf ? a : v128.and(ofTwo(high), a);
  if (high === 0) return low === 0xf ? v128.not(a) : v128.andnot(ofTwo(low), a);
  if ((low ^ high) === 0xf) return v128.xor(ofTwo(low), a);
  return v128.bitselect(ofTwo(high), ofTwo(low), a);
}

/** `lop3` with its table in a register: the bit of each entry, spread over the word, where its three bits occur. */
const lookUp: VectorFunction = (body, a, b, c, table) => {
  let result: Expression = i32x4.splat(0);
  for (let entry = 0; entry < 8; entry++) {
    const spread = i32x4.shrS(i32x4.shl(table, 31 - entry), 31);
    const place = ofThreeBits(1 << entry, a, b, c);
    result = body.keep(v128.or(result, v128.and(place, spread)));
  }
  return result;
};

const lop3: Emitter = {
  name: 'lop3.b32',
  sources: 4,
  emit: (body: FunctionBody, a, b, c, table) => {
    const [x, y, z] = [a.vectors[0], b.vectors[0], c.vectors[0]];
    return table.constant === null
      ? [[lookUp(body, x, y, z, table.vectors[0])]]
      : [[ofThreeBits(Number(table.constant & 0xffn), x, y, z)]];
  },
};

/** Bitwise logic. */
export const logicEmitters: readonly Emitter[] = [...bitwise, ...complements, ...counted, lop3];
