import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionOracle,
  gradientNames,
  gradientOracle,
  type Gradient,
  type GroupGradients,
  type SharedGradients,
} from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  createGradientBounds,
  createSharedBounds,
} from '../../../../src/audit/gradients/bounds/index.js';
import type { GradientTechniqueBound } from '../../../../src/audit/gradients/bounds/group-bounds.js';
import {
  addToTable,
  emptyTechniqueSums,
  techniqueTable,
} from '../../../../src/audit/gradients/bounds/technique-table.js';
import {
  createGroupMeasure,
  gatherGroups,
  measureGradients,
  type MeasuredGradient,
} from '../../../../src/audit/gradients/measure-gradients.js';
import { outputGradient } from '../../../../src/audit/gradients/gradient-quantities.js';
import {
  chooseKeys,
  chooseRows,
  sampledProblem,
  sampledQuantity,
} from '../../../../src/audit/rows/index.js';
import { problemShape, type Problem, type Tensor } from '../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const given = { out: null, lse: null };

interface Case {
  readonly problem: Problem;
  readonly dout: Tensor;
}

/** Problems of several batch entries, groups and heads, with a bias and sinks. */
const cases: fc.Arbitrary<Case> = fc
  .record({
    batch: fc.constantFrom(1, 2),
    kvHeads: fc.constantFrom(1, 2),
    groupSize: fc.constantFrom(1, 3),
    queries: fc.integer({ min: 2, max: 5 }),
    keys: fc.integer({ min: 3, max: 6 }),
    format: fc.constantFrom('bf16' as const, 'fp32' as const),
    causal: fc.boolean(),
    drops: fc.boolean(),
    hasSinks: fc.boolean(),
    seed: fc.nat(1e6),
  })
  .map(({ batch, kvHeads, groupSize, queries, keys, format, causal, drops, hasSinks, seed }) => {
    const random = bellShaped(seed);
    const heads = kvHeads * groupSize;
    const frame = { batch, heads, kvHeads, queries, keys, dim: 3, vDim: 2, format };
    const isKept = () => (random() < 0.5 ? 1 : 0);
    const shape = [batch, heads, queries, keys];
    const problem = filledProblem(frame, random, {
      causal,
      bias: tensor('fp32', [heads, 1, keys], random),
      ...(hasSinks && { sink: { logits: tensor('fp32', [heads], random), inLse: true } }),
      ...(drops && {
        dropout: {
          kept: { shape, data: Uint8Array.from({ length: shape.reduce((a, b) => a * b) }, isKept) },
          probability: 0.25,
        },
      }),
    });
    return { problem, dout: tensor(format, [batch, heads, queries, 2], random) };
  });

/** All groups by themselves, one after the other, with their bounds, and what they add to. */
function everyGroup({ problem, dout }: Case) {
  const reference = attentionOracle(problem);
  const premises = anyGradientPremises(problem, 'bf16');
  const shared = createSharedBounds(problem, reference.shape, premises, {
    dbias: 'fp32',
    dsink: problem.sink === undefined ? null : 'bf16',
  });
  const boundsOf = createGradientBounds({ problem, dout, reference, premises, given, shared });
  const walk = gradientOracle(problem, dout, {
    wanted: gradientNames.filter((name) => name !== 'dsink' || problem.sink !== undefined),
  });
  const groups: { group: GroupGradients; bounds: ReturnType<typeof boundsOf> }[] = [];
  let next = walk.next();
  for (; next.done !== true; next = walk.next())
    groups.push({ group: next.value, bounds: boundsOf(next.value) });
  const ofAll: SharedGradients = next.value;
  return { premises, reference, groups, exact: ofAll, bounds: shared.finish(ofAll) };
}

const joined = (parts: readonly Float64Array[]) => parts.flatMap((part) => [...part]);

/** Expects a gradient that is made of parts, in their order. */
function expectParts(
  found: MeasuredGradient,
  parts: readonly { readonly exact: Gradient; readonly bound: GradientTechniqueBound }[],
): void {
  for (const name of ['values', 'radius', 'magnitude'] as const)
    expect([...found.exact[name]], name).toEqual(joined(parts.map(({ exact }) => exact[name])));
  for (const name of [
    'total',
    'systematic',
    'known',
    'deviation',
    'shift',
    'reach',
    'operands',
  ] as const)
    expect([...found.bound[name]], name).toEqual(joined(parts.map(({ bound }) => bound[name])));
  const [{ bound }] = parts;
  expect(found.bound.byOthers.map((of) => [...of])).toEqual(
    bound.byOthers.map((_, k) => joined(parts.map((part) => part.bound.byOthers[k]))),
  );
}

const partsOf = (groups: ReturnType<typeof everyGroup>['groups']) => ({
  dq: groups.flatMap(({ group, bounds }) =>
    group.heads.map((head, i) => ({ exact: head.dq!, bound: bounds.heads[i].dq! })),
  ),
  dk: groups.map(({ group, bounds }) => ({ exact: group.dk!, bound: bounds.dk! })),
  dv: groups.map(({ group, bounds }) => ({ exact: group.dv!, bound: bounds.dv! })),
});

const columnsOf = { dq: 3, dk: 3, dv: 2 } as const;
const names = ['dq', 'dk', 'dv'] as const;

describe('measured gradients', () => {
  it('are those of all groups, each in its place, with their tables of techniques', () => {
    fc.assert(
      fc.property(cases, (one) => {
        const { premises, groups, exact, bounds } = everyGroup(one);
        const hasSinks = one.problem.sink !== undefined;
        const shared = { dbias: 'fp32', dsink: hasSinks ? 'bf16' : null } as const;
        const found = measureGradients(one.problem, one.dout, { premises, given, shared });
        const shape = problemShape(one.problem);
        expect(found.shape).toEqual(shape);
        const parts = partsOf(groups);
        for (const name of names) {
          expectParts(found.gradients[name], parts[name]);
          expect(found.gradients[name].shape).toEqual(shape);
          const sums = emptyTechniqueSums();
          for (const { bound } of parts[name]) addToTable(sums, bound.techniques, columnsOf[name]);
          expect(found.techniques[name]).toEqual(techniqueTable(sums, name));
        }
        for (const name of hasSinks ? (['dbias', 'dsink'] as const) : (['dbias'] as const)) {
          const bound = bounds[name]!;
          expectParts(found.gradients[name]!, [{ exact: exact[name]!, bound }]);
          const sums = emptyTechniqueSums();
          addToTable(sums, bound.techniques, bound.total.length);
          expect(found.techniques[name]).toEqual(techniqueTable(sums, name));
        }
        expect(found.gradients.dbias!.shape).toMatchObject({ ...shape, batch: 1, queries: 1 });
        expect(found.gradients.dsink?.shape).toEqual(
          hasSinks ? { ...shape, batch: 1, queries: 1 } : undefined,
        );
        const heads = groups.flatMap(({ group }) => group.heads);
        expect([...found.mean.values]).toEqual(joined(heads.map(({ mean }) => mean.values)));
        expect([...found.mean.magnitude]).toEqual(joined(heads.map(({ mean }) => mean.magnitude)));
        const variances = groups.flatMap((group) => group.bounds.heads);
        expect([...found.weightVariance]).toEqual(
          joined(variances.map(({ weightVariance }) => weightVariance)),
        );
      }),
      { numRuns: 3 },
    );
  });

  it('are those that are wanted, and nothing of the others', () => {
    fc.assert(
      fc.property(cases, fc.subarray([...names], { minLength: 1 }), ({ problem, dout }, wanted) => {
        const premises = anyGradientPremises(problem, 'fp32');
        const settings = { premises, given };
        const all = measureGradients(problem, dout, settings);
        const some = measureGradients(problem, dout, { ...settings, wanted });
        for (const name of names) {
          const { exact, bound, shape } = some.gradients[name];
          if (wanted.includes(name)) expect(exact).toEqual(all.gradients[name].exact);
          else {
            expect([exact.values.length, bound.total.length, shape.batch]).toEqual([0, 0, 0]);
            expect(some.techniques[name].elements).toBe(0);
          }
        }
        expect(some.gradients.dbias).toBeUndefined();
        expect(some.techniques.dsink).toBeUndefined();
        expect(some.mean).toEqual(all.mean);
      }),
      { numRuns: 3 },
    );
  });

  it('are the same from groups that were measured apart, and gathered', () => {
    fc.assert(
      fc.property(cases, ({ problem, dout }) => {
        const premises = anyGradientPremises(problem, 'bf16');
        const reference = attentionOracle(problem);
        const settings = { premises, given, reference };
        const whole = measureGradients(problem, dout, settings);
        const { batch, kvHeads } = reference.shape;
        const ofGroups = { ...settings, wanted: ['dq', 'dk', 'dv'], keys: null } as const;
        const measure = createGroupMeasure(problem, dout, ofGroups);
        const groups = Array.from({ length: batch * kvHeads }, (_, kvHead) => measure(kvHead));
        expect(groups.map(({ group }) => group.kvHead)).toEqual([...groups.keys()]);
        const { add, finish } = gatherGroups(ofGroups);
        for (const group of groups) add(group);
        expect(finish()).toEqual(whole);
        expect(() => measure(batch * kvHeads)).toThrow();
      }),
      { numRuns: 3 },
    );
  });

  it('are those of the keys of a sample, and of all keys where there is none', () => {
    fc.assert(
      fc.property(cases, ({ problem, dout }) => {
        const premises = anyGradientPremises(problem, 'bf16');
        const shape = problemShape(problem);
        const heads = shape.batch * shape.kvHeads;
        const keys = chooseKeys(problem, shape, { keys: 2 * heads, seed: 4 });
        const all = measureGradients(problem, dout, { premises, given });
        const wanted = ['dk', 'dv'] as const;
        const some = measureGradients(problem, dout, { premises, given, keys });
        expect(some.gradients.dq).toEqual(all.gradients.dq);
        for (const name of wanted) {
          const columns = columnsOf[name];
          expect(some.gradients[name].shape.keys).toBe(2);
          const { exact, bound } = some.gradients[name];
          keys!.selection.forEach((key, at) => {
            const from = Math.floor(at / 2) * shape.keys + key;
            for (let c = 0; c < columns; c++) {
              const [one, other] = [at * columns + c, from * columns + c];
              const { exact: whole, bound: ofWhole } = all.gradients[name];
              expect(exact.values[one]).toBeCloseTo(whole.values[other], 10);
              expect(bound.total[one] / ofWhole.total[other]).toBeCloseTo(1, 6);
            }
          });
        }
      }),
      { numRuns: 3 },
    );
  });

  it('are those of dQ alone where the problem is a sample of rows', () => {
    fc.assert(
      fc.property(cases, (one) => {
        const shape = problemShape(one.problem);
        const rows = chooseRows(one.problem, shape, { rows: shape.batch * shape.heads, seed: 2 });
        if (rows === null) return;
        const problem = sampledProblem(one.problem, shape, rows);
        const dout = sampledQuantity(outputGradient, one.dout, shape, rows);
        const premises = anyGradientPremises(problem, 'bf16');
        const { gradients } = measureGradients(problem, dout, { premises, given });
        expect(names.map((name) => gradients[name].exact.values.length > 0)).toEqual([
          true,
          false,
          false,
        ]);
      }),
      { numRuns: 3 },
    );
  });

  it('tell how far they are, from 0 to 1', () => {
    const [one] = fc.sample(cases, { numRuns: 1, seed: 1 });
    const premises = anyGradientPremises(one.problem, 'bf16');
    const told: number[] = [];
    const progress = (done: number) => told.push(done);
    measureGradients(one.problem, one.dout, { premises, given, progress });
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.at(-1)).toBe(1);
    const ofForward = told.filter((done) => done <= 0.2);
    expect(ofForward.at(-1)).toBeCloseTo(0.2, 12);
    expect(told.length).toBeGreaterThan(ofForward.length);
  });
});
