import { describe, expect, it } from 'vitest';
import {
  resolvePromises,
  runCase,
  type AttentionKernel,
  type LawCase,
  type LawId,
} from '../../../properties/index.js';
import { findKind } from '../../../properties/suite/violation-kind.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tensor } from '../../setup/problems.js';
import { variedProblem } from '../laws/try-law.js';

const small = { batch: 2, heads: 2, kvHeads: 1, queries: 3, keys: 4, dim: 2, vDim: 2 } as const;
const plain = variedProblem({}, small);
/** Its first two queries of four see no key. */
const empty = variedProblem({ causal: true }, { ...small, queries: 4, keys: 2 });
/** With a NaN in the values of one key. */
const special: Problem = {
  ...plain,
  v: tensor('fp32', [2, 1, 4, 2], (i) => (i === 5 ? NaN : 0.5)),
};

type Change = (out: Float64Array, lse: Float64Array, problem: Problem) => void;

/** Attention by definition in fp64, changed in place. */
const changed =
  (...changes: readonly Change[]): AttentionKernel =>
  (problem) => {
    const { out, lse } = definedAttention(problem);
    for (const change of changes) change(out, lse, problem);
    const { batch, heads, queries, vDim } = problemShape(problem);
    const shape = [batch, heads, queries];
    return {
      out: { format: 'fp64', shape: [...shape, vDim], data: out },
      lse: { format: 'fp64', shape, data: lse },
    };
  };

const ofEmptyRows =
  (x: number, ofLse = -Infinity): Change =>
  (out, lse, problem) => {
    const { vDim } = problemShape(problem);
    const { visible } = definedAttention(problem);
    visible.forEach((keys, row) => {
      if (keys.length > 0) return;
      out.fill(x, row * vDim, (row + 1) * vDim);
      lse[row] = ofLse;
    });
  };
const wrongLse: Change = (_, lse) => lse.forEach((x, row) => (lse[row] = x + 1));
const wrongElement: Change = (out) => (out[3] += 0.25);
const withNaN: Change = (out) => (out[3] = NaN);
const finite: Change = (out) => out.forEach((x, i) => (out[i] = Number.isNaN(x) ? 0 : x));

interface Trial {
  readonly law?: LawId;
  readonly drawn?: Problem;
  readonly diagnosis?: Parameters<typeof findKind>[0]['diagnosis'];
  readonly fitting?: readonly string[];
  readonly configuration?: AttentionKernel;
}

/** The kind of the violation of a law by a kernel. */
async function kindOf(
  kernel: AttentionKernel,
  problem: Problem,
  { law = 'within-bound', drawn, diagnosis = null, fitting = [], configuration }: Trial = {},
) {
  const promises = resolvePromises({
    formats: ['fp32'],
    lse: true,
    specialValues: true,
    ...(configuration === undefined
      ? {}
      : { configurations: { other: { kernel: configuration } } }),
  });
  const lawCase: LawCase = { problem, choice: 0 };
  const result = await runCase(law, lawCase, kernel, promises, { diagnose: false });
  if (result.status !== 'violated') return expect.fail(`it is not violated: ${result.status}`);
  const whole = drawn === undefined ? lawCase : { problem: drawn, choice: 0 };
  const found = { law, lawCase, drawn: whole, result, diagnosis, fitting };
  const { id, title, equivalents } = await findKind(found, kernel, promises);
  return { id, title, equivalents, statement: result.statement };
}

describe('the kind of a violation', () => {
  it('is of rows without keys where the kernel is right on all others', async () => {
    const equivalents = ['rows-without-keys-not-zero', 'lse-of-empty-rows'].map(
      (id) => `diagnosis ${id}`,
    );
    for (const [change, title] of [
      [ofEmptyRows(NaN, NaN), 'NaN on rows without keys'],
      [ofEmptyRows(0, NaN), 'NaN on rows without keys'],
      [ofEmptyRows(1), 'O is not 0 on rows without keys'],
      [ofEmptyRows(0, 0), 'the LSE is not −∞ on rows without keys'],
    ] as const)
      expect(await kindOf(changed(change), empty)).toMatchObject({
        id: 'rows-without-keys',
        title,
        equivalents,
      });
    // An error elsewhere is another cause, on the case as it was drawn as well.
    const both = changed(ofEmptyRows(1), (out) => (out[out.length - 1] += 0.25));
    expect((await kindOf(both, empty)).id).toBe('law within-bound');
    const elsewhere = changed(ofEmptyRows(1), (out, _, { causal }) => {
      if (!causal) out[0] += 0.25;
    });
    expect((await kindOf(elsewhere, empty)).id).toBe('rows-without-keys');
    expect((await kindOf(elsewhere, empty, { drawn: plain })).id).toBe('law within-bound');
    expect((await kindOf(elsewhere, empty, { drawn: empty })).id).toBe('rows-without-keys');
  });

  it('is that of the diagnosis, if rows without keys are not the cause', async () => {
    const diagnosis = {
      id: 'scale',
      sentence: 'the scale is wrong',
      equivalents: ['base', 'dim'],
      place: null,
    };
    expect(await kindOf(changed(wrongLse), plain, { diagnosis })).toMatchObject({
      id: 'diagnosis scale',
      title: 'the scale is wrong',
      // Putting the LSE right makes the law hold as well.
      equivalents: ['diagnosis base', 'diagnosis dim', 'lse'],
    });
    expect((await kindOf(changed(ofEmptyRows(1)), empty, { diagnosis })).id).toBe(
      'rows-without-keys',
    );
  });

  it('may be of whatever the rows of the problem as it was drawn bear out', async () => {
    const fitting = ['causal-mask-missing', 'mask-aligned-top-left'];
    const ofFitting = fitting.map((id) => `diagnosis ${id}`);
    const ofRows = await kindOf(changed(ofEmptyRows(1)), empty, { fitting });
    expect(ofRows.id).toBe('rows-without-keys');
    expect(ofRows.equivalents).toEqual(expect.arrayContaining(ofFitting));
    const both = changed(ofEmptyRows(1), (out) => (out[out.length - 1] += 0.25));
    const ofLaw = await kindOf(both, empty, { fitting });
    expect([ofLaw.id, ofLaw.equivalents]).toEqual(['law within-bound', ofFitting]);
  });

  it('is else what has to be put right', async () => {
    expect(await kindOf(changed(wrongLse), plain)).toMatchObject({
      id: 'lse',
      title: 'the LSE is wrong, O is not',
      equivalents: [],
    });
    expect(await kindOf(changed(withNaN), plain)).toMatchObject({
      id: 'non-finite',
      title: 'NaN or ∞ where exact attention is finite',
    });
    expect(await kindOf(changed(finite), special)).toMatchObject({
      id: 'special-inputs',
      title: 'what becomes of NaN and ∞ in the inputs',
    });
    // Of two errors neither is the cause.
    for (const kernel of [changed(wrongElement), changed(wrongLse, wrongElement)]) {
      const { id, title, statement } = await kindOf(kernel, plain);
      expect([id, title]).toEqual(['law within-bound', statement]);
    }
  });

  it('is of the fault of a kernel that does not compute, whatever its diagnosis', async () => {
    const broken: AttentionKernel = () => {
      throw new Error('stopped after 12 of 40 rows');
    };
    const diagnosis = { id: 'scale', sentence: 'the scale is wrong', equivalents: [], place: null };
    expect(await kindOf(broken, empty, { diagnosis })).toMatchObject({
      id: 'fault the kernel threw: stopped after # of # rows',
      title: 'the kernel threw: stopped after 12 of 40 rows',
      equivalents: [],
    });
  });

  it('puts the other configurations right as well', async () => {
    const law = 'configurations';
    const right = changed();
    expect(await kindOf(right, plain, { law, configuration: changed(wrongLse) })).toMatchObject({
      id: 'lse',
    });
    expect(
      await kindOf(right, plain, { law, configuration: changed(wrongLse, wrongElement) }),
    ).toMatchObject({ id: 'law configurations' });
  });
});
