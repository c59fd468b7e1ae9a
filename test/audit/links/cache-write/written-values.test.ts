import { describe, expect, it } from 'vitest';
import { writtenValues } from '../../../../oracles/index.js';
import { loadMpfr } from '../../../oracles/mpfr.js';
import { decodePlain, encodePlain } from './plain-codes.js';
import { auditedWrite, drawPlan } from './drawn-plan.js';
import { writePlain, type Plan } from './plain-writer.js';

const mpfr = await loadMpfr();

/** K after norm and rotation in arithmetic of 200 bits, and how far each number is from the middle of a span. */
function distances(plan: Plan, middle: Float64Array): Float64Array {
  const { heads, columns, norm, rope, positions, inputs } = plan;
  const found = new Float64Array(middle.length);
  for (let row = 0; row * columns < middle.length; row++)
    mpfr.withPrecision(200, (a) => {
      const at = row * columns;
      let vector = [...inputs[0].subarray(at, at + columns)].map((x) => a.of(x));
      if (norm !== null) {
        const sum = vector.reduce((total, x) => a.add(total, a.multiply(x, x)), a.of(0));
        const mean = a.add(a.divide(sum, a.of(columns)), a.of(norm.epsilon));
        const root = a.squareRoot(mean);
        const head = norm.perHead ? row % heads : 0;
        vector = vector.map((x, i) =>
          a.multiply(a.divide(x, root), a.of(norm.gain[head * columns + i])),
        );
      }
      if (rope !== null) {
        const turned = [...vector];
        const from = positions[Math.floor(row / heads)] * rope.pairs;
        for (let t = 0; t < rope.pairs; t++) {
          const [i, j] = rope.layout === 'halves' ? [t, t + rope.pairs] : [2 * t, 2 * t + 1];
          const [c, s] = [a.of(rope.cos[from + t]), a.of(rope.sin[from + t])];
          turned[i] = a.subtract(a.multiply(vector[i], c), a.multiply(vector[j], s));
          turned[j] = a.add(a.multiply(vector[j], c), a.multiply(vector[i], s));
        }
        vector = turned;
      }
      vector.forEach((x, i) => (found[at + i] = a.distance(x, middle[at + i])));
    });
  return found;
}

describe('numbers before they are stored', () => {
  it.for([
    [true, false],
    [false, true],
    [true, true],
  ] as const)(
    'rotated: %s, normed: %s: spans are around the exact numbers, and narrow',
    ([rope, norm]) => {
      for (let seed = 0; seed < 12; seed++) {
        const plan = drawPlan(seed, { rope, norm, code: 'bf16', spread: 6, tokens: 3 });
        const [part] = auditedWrite(plan, writePlain(plan)).parts;
        const { low, high } = writtenValues(part);
        const middle = low.map((x, i) => (x + high[i]) / 2);
        const off = distances(plan, middle);
        const largest = middle.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
        off.forEach((distance, i) => {
          const radius = (high[i] - low[i]) / 2;
          // fp64 errs by far less than fp32, for which the radius stands.
          expect(distance).toBeLessThanOrEqual(radius * 1e-4);
          expect(radius).toBeLessThanOrEqual(largest * (norm ? 1e-5 : 4e-7));
        });
      }
    },
  );

  it('has room for a rotation in bf16, each operation rounded', () => {
    const bf16 = (x: number) => decodePlain('bf16', encodePlain('bf16', Math.fround(x)));
    for (let seed = 0; seed < 20; seed++) {
      const plan = drawPlan(seed, { rope: true, norm: false, code: 'bf16', spread: 6 });
      const [part] = auditedWrite(plan, writePlain(plan)).parts;
      const { prologue } = part;
      if (prologue === null || plan.rope === null) throw new Error('no rotation');
      const { low, high } = writtenValues({
        ...part,
        prologue: { ...prologue, rounding: 'bf16' },
      });
      const { pairs, layout, cos, sin } = plan.rope;
      for (let row = 0; row * plan.columns < low.length; row++) {
        const from = plan.positions[Math.floor(row / plan.heads)] * pairs;
        for (let t = 0; t < pairs; t++) {
          const [a, b] = layout === 'halves' ? [t, t + pairs] : [2 * t, 2 * t + 1];
          const [i, j] = [row * plan.columns + a, row * plan.columns + b];
          const [x, y] = [plan.inputs[0][i], plan.inputs[0][j]];
          const first = bf16(bf16(x * cos[from + t]) - bf16(y * sin[from + t]));
          const second = bf16(bf16(y * cos[from + t]) + bf16(x * sin[from + t]));
          expect(first >= low[i] && first <= high[i]).toBe(true);
          expect(second >= low[j] && second <= high[j]).toBe(true);
        }
      }
    }
  });

  it('is exact without a prologue', () => {
    const plan = drawPlan(3, { rope: false, norm: false });
    const [part] = auditedWrite(plan, writePlain(plan)).parts;
    const { low, high } = writtenValues(part);
    expect(low).toBe(high);
    expect([...low]).toEqual([...plan.inputs[0]]);
  });
});
