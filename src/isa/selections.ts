import { float32Of } from '../arith/index.js';
import type { LaneValue } from './instruction.js';
import { type Row, row } from './row.js';
import { flushed, type FloatType, floatTypes } from './values/float-type.js';
import { v128, i64x2 } from './webassembly/index.js';

const selectedTypes = [
  ...['.b32', '.u32', '.s32', '.f32', '.b16', '.u16', '.s16'],
  ...['.b64', '.u64', '.s64', '.f64'],
] as const;

const common = {
  section: 'Comparison and Selection Instructions',
  unit: 'alu',
  evidence: 'silicon',
} as const;

/** Whether the third operand of `slct` selects the first: flushing makes a small negative number −0, which does. */
function isNotNegative(type: string, ftz: string): (c: number) => boolean {
  if (type === 's32') return (c) => (c | 0) >= 0;
  return ftz === '' ? (c) => float32Of(c) >= 0 : (c) => flushed(floatTypes.f32, float32Of(c)) >= 0;
}

/** The tests of `testp` on a number; zeros count as normal. */
const tests: Readonly<Record<string, (type: FloatType, value: number) => boolean>> = {
  finite: (_, value) => Number.isFinite(value),
  infinite: (_, value) => Math.abs(value) === Infinity,
  number: (_, value) => !Number.isNaN(value),
  notanumber: (_, value) => Number.isNaN(value),
  normal: (type, value) =>
    value === 0 || (Number.isFinite(value) && Math.abs(value) >= type.smallestNormal),
  subnormal: (type, value) => value !== 0 && Math.abs(value) < type.smallestNormal,
};

/** `selp` and `slct` of all types, `testp`. */
export const selectionRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'selp.type d, a, b, c',
    alternatives: { type: selectedTypes },
    operands: { c: 'pred' },
    evaluate: () => (a: LaneValue, b: LaneValue, predicate: number) => (predicate === 0 ? b : a),
    emit:
      () =>
      (_, a, b, { vectors: [p] }) => {
        const masks =
          a.vectors.length === 1 ? [p] : [i64x2.extendLowI32x4S(p), i64x2.extendHighI32x4S(p)];
        return [masks.map((mask, i) => v128.bitselect(a.vectors[i], b.vectors[i], mask))];
      },
    isOfMachine: ({ type }) => type.endsWith('32'),
    meaning: 'chooses',
  }),
  row({
    ...common,
    syntax: 'slct{.ftz}.type.ctype d, a, b, c',
    alternatives: { type: selectedTypes, ctype: ['.s32', '.f32'] },
    operands: ({ type, ctype }) => ({ a: type, b: type, c: ctype }),
    except: ({ ftz, ctype }) => ftz !== '' && ctype === 's32',
    evaluate: ({ ftz, ctype }) => {
      const isFirst = isNotNegative(ctype, ftz);
      return (a: LaneValue, b: LaneValue, c: number) => (isFirst(c) ? a : b);
    },
    meaning: 'chooses',
  }),
  row({
    ...common,
    syntax: 'testp.op.type p, a',
    alternatives: { op: Object.keys(tests).map((name) => `.${name}`), type: ['.f32', '.f64'] },
    evaluate: ({ op, type: name }) => {
      const type = floatTypes[name as 'f32' | 'f64'];
      const holds = tests[op];
      return (a: LaneValue) => (holds(type, type.numberOf(a)) ? 1 : 0);
    },
    meaning: 'decides',
    section: 'Floating Point Instructions',
  }),
];
