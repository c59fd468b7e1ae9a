import * as fc from 'fast-check';
import { expect } from 'vitest';
import {
  emulateRecurrence,
  findRecurrentModel,
  roundingTo,
  runRecurrence,
  type RecurrentArithmetic,
} from '../../../kernels/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { auditRecurrent, type RecurrentDeclaration } from '../../../src/audit/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import {
  drawnRecurrence,
  recurrence,
  tame,
  type DrawnRecurrence,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { fromEnvironment, scaled } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const it = turns(import.meta.url);

/** A correct kernel: its arithmetic, and what of it has to be declared. */
interface CorrectKernel {
  readonly of: (problem: RecurrentProblem) => RecurrentArithmetic;
  readonly declared?: RecurrentDeclaration;
}

const chunked = (problem: RecurrentProblem, chunk: number) =>
  arithmeticsOf(problem, { form: 'chunked', chunk })[0];
const tokenByToken = (problem: RecurrentProblem, declared: RecurrentDeclaration = {}) =>
  arithmeticsOf(problem, { ...declared, form: 'recurrent' })[0];

/** Six kernels, all correct. */
const kernels: Readonly<Record<string, CorrectKernel>> = {
  'token by token': { of: tokenByToken },
  'in chunks of 16': { of: (problem) => chunked(problem, 16) },
  'in chunks of 64': {
    of: (problem) => ({ ...chunked(problem, 64), inverse: 'substitution' }),
  },
  'with an inverse in blocks of 16': {
    of: (problem) => ({ ...chunked(problem, 64), inverse: { block: 16 } }),
  },
  'with its state in bf16': {
    of: (problem) => tokenByToken(problem, { state: 'bf16' }),
    declared: { state: 'bf16' },
  },
  'in reverse order': { of: (problem) => ({ ...tokenByToken(problem), accumulation: 'reversed' }) },
};

/** Problems of all families, short and of some chunks. */
const problems: fc.Arbitrary<DrawnRecurrence> = fc
  .record({
    drawn: drawnRecurrence(),
    lengths: fc.array(fc.nat(80), { minLength: 1, maxLength: 3 }),
    keyDim: fc.constantFrom(4, 8, 16, 32),
    valueDim: fc.constantFrom(1, 4, 16),
    isLong: fc.boolean(),
  })
  .map(({ drawn, lengths, keyDim, valueDim, isLong }) => {
    const format = drawn.format === 'fp64' ? 'fp16' : drawn.format;
    return isLong ? { ...drawn, format, lengths, keyDim, valueDim } : { ...drawn, format };
  });

/** What a kernel gives, in formats as usual. */
function resultsOf(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  gradientInputs: RecurrentGradientInputs | undefined,
) {
  const { q, k, v, beta } = problem;
  const of = { out: v, dq: q, dk: k, dv: v, ...(beta && { dbeta: beta }) };
  const outputs = Object.fromEntries(
    Object.entries(of).map(([name, { format }]) => [name, format]),
  );
  const stored = { ...arithmetic, outputs };
  const options = gradientInputs ? { gradientInputs } : {};
  const values = runRecurrence(problem, stored, roundingTo(stored), options);
  const shape = recurrentShape(problem);
  const tensors = recurrentQuantityNames.flatMap((name) => {
    const sizes = recurrentQuantityShape(name, problem, shape);
    const ofName = values[name];
    if (sizes === null || ofName === undefined) return [];
    let at = 0;
    return [[name, tensor(outputs[name] ?? 'fp32', sizes, () => ofName[at++])] as const];
  });
  return Object.fromEntries(tensors);
}

/** Gradients of fp16 that underflow. */
const underflowing: DrawnRecurrence = {
  family: 'simple-gla',
  lengths: [51, 0, 0],
  isPacked: false,
  keyHeads: 2,
  groupSize: 1,
  keyDim: 16,
  valueDim: 1,
  format: 'fp16',
  isNormalised: false,
  hasState: false,
  seed: 985020197,
};

/** FALSE_ALARM_RUNS problems a kernel. */
const runs = fromEnvironment('FALSE_ALARM_RUNS', 25);

it.each(Object.entries(kernels))(
  'a kernel %s raises no false alarm',
  (_, { of, declared = {} }) => {
    fc.assert(
      fc.property(problems, fc.boolean(), (drawn, hasGradients) => {
        const problem = recurrence(drawn, tame);
        const random = randomValues(drawn.seed + 1);
        const dout = tensor(problem.v.format, problem.v.shape, random.normal);
        const gradientInputs = hasGradients ? { dout } : undefined;
        fc.pre(problem.v.data.length > 0);
        const results = resultsOf(problem, of(problem), gradientInputs);
        const { verdict } = auditRecurrent(
          problem,
          { results, gradientInputs },
          { declared, diagnose: false },
        );
        expect(verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(runs), examples: [[underflowing, true]] },
    );
  },
  600_000,
);

it('a kernel in reverse order rounds otherwise than the same in order', () => {
  const drawn: DrawnRecurrence = { ...underflowing, family: 'delta', format: 'bf16', keyDim: 32 };
  const problem = recurrence(drawn, tame);
  const run = (accumulation: RecurrentArithmetic['accumulation']) => {
    const arithmetic = { ...tokenByToken(problem), ...(accumulation && { accumulation }) };
    return runRecurrence(problem, arithmetic, roundingTo(arithmetic)).out!;
  };
  const differing = (a: Float64Array, b: Float64Array) => a.filter((x, i) => x !== b[i]).length;
  const [once, forwards, backwards] = [run(undefined), run('in-order'), run('reversed')];
  for (const [a, b] of [
    [once, forwards],
    [once, backwards],
    [forwards, backwards],
  ])
    expect(differing(a, b)).toBeGreaterThan(a.length / 4);
});

/** Models with what is true of them. */
const declared: readonly (readonly [string, RecurrentDeclaration])[] = [
  ['naive-recurrent', { form: 'recurrent' }],
  ['chunked', { form: 'chunked', chunk: 64 }],
];

const small = { ...underflowing, keyDim: 4, format: 'bf16' } as const;

/** Heads that share a key, whose gradients are stored before they are added; a delta write, whose lack is stored, also in tokens long before. */
const rereading: readonly DrawnRecurrence[] = [
  ...(['linear', 'gated-delta'] as const).map((family) => ({
    ...small,
    family,
    lengths: [17],
    groupSize: 2,
    valueDim: 4,
    hasState: true,
  })),
  { ...small, family: 'delta', lengths: [65], keyHeads: 1, seed: 0 },
  // What a write lacks is in a higher binade than the write.
  { ...small, family: 'gated-delta', lengths: [28, 0], keyHeads: 1, seed: 0 },
];

it.each(declared)(
  'an emulated kernel with its own declaration raises no false alarm: %s',
  (name, declaration) => {
    const model = findRecurrentModel(name)!;
    fc.assert(
      fc.property(problems, (drawn) => {
        const problem = recurrence(drawn, tame);
        const random = randomValues(drawn.seed + 1);
        const gradientInputs = { dout: tensor(problem.v.format, problem.v.shape, random.normal) };
        fc.pre(problem.v.data.length > 0);
        const results = emulateRecurrence(problem, model.arithmetic(problem), { gradientInputs });
        const { verdict } = auditRecurrent(
          problem,
          { results, gradientInputs },
          { declared: declaration, diagnose: false },
        );
        expect(verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(runs), examples: rereading.map((drawn) => [drawn] as const) },
    );
  },
  600_000,
);
