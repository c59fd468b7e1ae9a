import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptySet, InfluenceDomain } from '../../src/meaning/domains/index.js';
import type { ProductTrace, Trace } from '../../src/meaning/trace/index.js';
import { numbers, programs, traceOf, valuesOf } from './random-trace.js';
import { scaled } from '../setup/effort.js';

interface Reached {
  readonly weight: ReadonlySet<number>;
  readonly structure: ReadonlySet<number>;
}
const nothing: Reached = { weight: new Set(), structure: new Set() };

function joined(...all: readonly Reached[]): Reached {
  return {
    weight: new Set(all.flatMap(({ weight }) => [...weight])),
    structure: new Set(all.flatMap(({ structure }) => [...structure])),
  };
}

/** What reaches a result that the first decides. */
function swallowed(one: Reached, ...others: readonly Reached[]): Reached {
  const { weight, structure } = joined(...others);
  return { weight: one.weight, structure: new Set([...one.structure, ...weight, ...structure]) };
}

function either(a: Reached, b: Reached, isFirst: boolean, isSecond: boolean): Reached {
  if (isSecond && (!isFirst || b.weight.size === 0)) return swallowed(b, a);
  return isFirst ? swallowed(a, b) : joined(a, b);
}

/** What reaches each value, one element after another, by the definition. */
function naive(trace: Trace): Reached[] {
  const reached: Reached[] = [];
  const isZero = (value: number) => trace.numberOf(value) === 0;
  const isInfinite = (value: number) => Math.abs(trace.numberOf(value)) === Infinity;
  const times = (a: number, b: number) => either(reached[a], reached[b], isZero(a), isZero(b));
  const element = ({ n, k, a, b, c, scales }: ProductTrace, d: number): Reached => {
    const [i, j] = [Math.floor(d / n), d % n];
    const pairs = Array.from({ length: k }, (_, x) => times(a[i * k + x], b[j * k + x]));
    const factors = scales === null ? [] : [reached[scales.a[i]], reached[scales.b[j]]];
    return joined(...pairs, ...factors, c === null ? nothing : reached[c[d]]);
  };
  for (let value = 0; value < trace.count; value++) {
    const [a, b, c] = [trace.a[value], trace.b[value], trace.c[value]];
    const { origin, function: name } = trace.operationOf(value);
    const lane = (): Reached => {
      if (name === 'add' || name === 'subtract')
        return either(reached[a], reached[b], isInfinite(a), isInfinite(b));
      if (name === 'multiply') return times(a, b);
      if (name === 'divide') return either(reached[a], reached[b], isZero(a), isInfinite(b));
      if (name === 'fma')
        return either(times(a, b), reached[c], isInfinite(a) || isInfinite(b), isInfinite(c));
      const all = joined(reached[a], reached[b], reached[c]);
      if (name !== 'copysign' || !isZero(b)) return all;
      return joined(all, { weight: reached[b].structure, structure: new Set() });
    };
    if (origin === 'input') reached.push({ weight: new Set([b]), structure: new Set() });
    else if (origin === 'choice') reached.push(joined(reached[a], reached[b]));
    else if (origin === 'product') reached.push(element(trace.products[a], b));
    else if (origin === 'constant' || origin === 'none') reached.push(nothing);
    else reached.push(lane());
  }
  return reached;
}

const sorted = (labels: Iterable<number>) => [...labels].sort((x, y) => x - y);

/** The kind of a number: finite, either infinity, or NaN. */
const kindOf = (x: number) => (Number.isFinite(x) ? 'finite' : String(x));

describe('what reaches the values of a trace', () => {
  it('is what follows element by element from the definition', () => {
    fc.assert(
      fc.property(programs, fc.nat(30), (program, first) => {
        const { trace, values } = traceOf(program);
        const domain = new InfluenceDomain(trace, (_input, element) => element);
        const whole = trace.count;
        // In two steps, as a run is followed; a product is there as a whole.
        const isFirst = (value: number) =>
          trace.operationOf(value).origin !== 'product' || trace.b[value] === 0;
        trace.count = values.find((value) => value >= first && isFirst(value)) ?? whole;
        domain.extend();
        trace.count = whole;
        domain.extend();
        const expected = naive(trace);
        for (const value of values) {
          const { weight, structure } = expected[value];
          expect(sorted(domain.sets.labelsOf(domain.withWeight[value]))).toEqual(sorted(weight));
          const only = [...structure].filter((label) => !weight.has(label));
          expect(sorted(domain.sets.labelsOf(domain.structureOnly(value)))).toEqual(sorted(only));
        }
      }),
      { numRuns: scaled(150) },
    );
  });

  it('holds: other inputs change nothing, as long as every number stays of its kind', () => {
    let held = 0;
    fc.assert(
      fc.property(
        programs,
        fc.array(numbers, { minLength: 8, maxLength: 8 }),
        (program, others) => {
          const { trace, values } = traceOf(program);
          const domain = new InfluenceDomain(trace, (_input, element) => element);
          domain.extend();
          const before = valuesOf(program, program.inputs);
          for (const [i, value] of values.entries()) {
            const fixed = new Set(domain.sets.labelsOf(domain.withWeight[value]));
            const kept = new Set(domain.sets.labelsOf(domain.structureOnly(value)));
            const changed = program.inputs.map((input, label) =>
              fixed.has(label) ? input : others[label],
            );
            const after = valuesOf(program, changed);
            // What reaches it not at all may be of any kind.
            const apart = program.inputs.map((input, label) =>
              fixed.has(label) || kept.has(label) ? input : others[label],
            );
            expect(valuesOf(program, apart)[i] + 0).toBe(before[i] + 0);
            if (after.some((number, x) => kindOf(number) !== kindOf(before[x]))) continue;
            if (kept.size > 0) held++;
            expect(after[i] + 0).toBe(before[i] + 0);
          }
        },
      ),
      { numRuns: scaled(300) },
    );
    expect(held).toBeGreaterThan(100);
  });

  it('is nothing where an infinity or a zero that is constant takes part', () => {
    const program = {
      inputs: [3, 0],
      steps: [
        { kind: 'constant', number: -Infinity },
        { kind: 'lane', name: 'add', operands: [0, 2] },
        { kind: 'lane', name: 'exp2', operands: [3] },
        { kind: 'lane', name: 'multiply', operands: [4, 1] },
        { kind: 'lane', name: 'multiply', operands: [1, 4] },
      ],
    } as const;
    const { trace, values } = traceOf(program);
    const domain = new InfluenceDomain(trace, (_input, element) => element);
    domain.extend();
    for (const weighted of values.slice(-2)) {
      expect(domain.withWeight[weighted]).toBe(emptySet);
      expect([...domain.sets.labelsOf(domain.structureOnly(weighted))]).toEqual([0, 1]);
    }
  });
});
