import { describe, expect, it } from 'vitest';
import {
  describeFailures,
  lawIds,
  laws,
  resolvePromises,
  type KernelPromises,
  type Law,
  type LawId,
  type LawStrength,
} from '../../../properties/index.js';
import { productionAspect, productionSizes } from '../../../properties/suite/law-cases.js';
import {
  lawOutcome,
  neverReached,
  runNumber,
  widenedNotes,
  type LawFailure,
  type LawResult,
} from '../../../properties/suite/law-progress.js';
import { featureNotes } from '../../../properties/suite/plan-check.js';
import {
  groupFailures,
  describeLawFailure,
  describeNothingTried,
} from '../../../properties/suite/check-kernel.js';
import { isPass } from '../../../properties/suite/try-laws.js';
import { promisesOf } from '../../../properties/suite/promises.js';
import { largestSizes } from '../../../properties/suite/try-round.js';
import { faultKind, groupByKind } from '../../../properties/suite/violation-kind.js';
import { replayCommand, suiteSettings } from '../../../properties/vitest/describe-laws.js';
import { RequestError } from '../../../src/request-error.js';
import { variedProblem } from '../laws/try-law.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('violations of one cause', () => {
  interface Kind {
    readonly id: string;
    readonly title: string;
    readonly equivalents: readonly string[];
  }
  const kind = (id: string, ...equivalents: string[]): Kind => ({
    id,
    title: `title ${id}`,
    equivalents,
  });
  const groups = (...kinds: Kind[]) =>
    groupByKind(kinds, (one) => one).map(({ title, violations }) => [
      title,
      ...violations.map((one) => kinds.indexOf(one)),
    ]);

  it('are those that fit the cause which fits most, and so on', () => {
    expect(groups()).toEqual([]);
    expect(groups(kind('a'), kind('b'), kind('a'))).toEqual([
      ['title a', 0, 2],
      ['title b', 1],
    ]);
    expect(groups(kind('a'), kind('b'), kind('b'), kind('c', 'a', 'b'))).toEqual([
      ['title b', 1, 2, 3],
      ['title a', 0],
    ]);
    expect(groups(kind('c', 'a'), kind('a'), kind('a'))).toEqual([['title a', 0, 1, 2]]);
    // What a kind has as an equivalent is no cause of others that have it too.
    expect(groups(kind('a', 'x'), kind('b', 'x'))).toEqual([
      ['title a', 0],
      ['title b', 1],
    ]);
  });

  it('of a kernel that does not compute are those of the same words, whatever the numbers', () => {
    expect(faultKind('out of 12 bytes at 7')).toEqual({
      id: 'fault out of # bytes at #',
      title: 'out of 12 bytes at 7',
      equivalents: [],
    });
  });
});

describe('what became of a law', () => {
  const planned = { skipped: null, isPromised: true };
  const outcome = (
    runs: number,
    unsupported: number,
    isViolated = false,
    plan: { skipped: string | null; isPromised: boolean } = planned,
  ) => lawOutcome(plan, { runs, unsupported, refusal: 'too large' }, isViolated);

  it('follows from its runs, those that were refused, and what was planned', () => {
    expect(outcome(3, 1)).toEqual({ status: 'holds', tried: 2, skipped: null });
    expect(outcome(3, 1, true)).toEqual({ status: 'violated', tried: 2, skipped: null });
    expect(outcome(3, 3)).toEqual({
      status: 'untried',
      tried: 0,
      skipped: 'none of its problems could be tried: too large',
    });
    expect(outcome(0, 0)).toEqual({ status: 'untried', tried: 0, skipped: neverReached });
    expect(outcome(0, 0, false, { skipped: 'not promised', isPromised: false })).toEqual({
      status: 'skipped',
      tried: 0,
      skipped: 'not promised',
    });
    const pass = (...statuses: LawResult['status'][]) =>
      isPass(statuses.map((status) => ({ status })));
    expect([
      pass('holds', 'skipped'),
      pass('holds', 'untried'),
      pass('skipped'),
      pass('holds', 'violated'),
      pass(),
    ]).toEqual([true, true, false, false, false]);
  });

  it('is numbered as if laws took turns', () => {
    const runs = [3, 1, 2].map((count) => ({ runs: count }));
    expect(runNumber(runs, 0, 1)).toBe(1);
    expect(runNumber(runs, 2, 1)).toBe(3);
    expect(runNumber(runs, 0, 2)).toBe(4);
    expect(runNumber(runs, 2, 2)).toBe(5);
    expect(runNumber(runs, 0, 3)).toBe(6);
  });

  it('is told with the largest sizes of all its problems, and formats that were widened', () => {
    const sizes = (batch: number, keys: number) => ({
      batch,
      heads: 1,
      groupSize: 1,
      queries: 2,
      keys,
      qkDim: 3,
      vDim: 4,
    });
    expect(largestSizes([])).toBeNull();
    expect(largestSizes([], sizes(1, 1))).toEqual(sizes(1, 1));
    expect(largestSizes([sizes(1, 9), sizes(2, 3)])).toEqual(sizes(2, 9));
    expect(largestSizes([sizes(1, 2)], sizes(3, 1))).toEqual(sizes(3, 2));
    expect(widenedNotes(['fp16', 'bf16', 'fp16']).map((note) => note.slice(0, 30))).toEqual([
      'outputs for bf16 inputs have d',
      'outputs for fp16 inputs have d',
    ]);
    const features = ['sink', 'packed'] as const;
    const notes = (...tried: { id: LawId; skipped: string | null }[]) =>
      featureNotes(tried, { features });
    expect(notes({ id: 'determinism', skipped: null })).toEqual([]);
    expect(notes({ id: 'padding', skipped: 'not promised' })).toEqual([]);
    const [note, ...others] = notes(
      { id: 'padding', skipped: null },
      { id: 'repeated-keys', skipped: null },
    );
    expect([
      note.endsWith('padding without packed; repeated-keys without sink, packed'),
      others,
    ]).toEqual([true, []]);
  });
});

describe('a failure in words', () => {
  const failure = (size: number, changes: Partial<LawFailure> = {}): LawFailure => ({
    lawCase: {
      problem: variedProblem(
        {},
        { batch: 1, heads: 1, kvHeads: 1, queries: 1, keys: size, dim: 1, vDim: 1 },
      ),
      choice: 1,
    },
    statement: `wrong by ${size}`,
    cause: null,
    hint: null,
    kind: { id: 'a', title: 'the cause', equivalents: [] },
    runs: [],
    shrinks: 0,
    regime: 'normal',
    round: 3,
    runsUntil: 1,
    secondsUntil: 0,
    ...changes,
  });
  const result = (id: LawId, of: LawFailure | null): LawResult => ({
    id,
    strength: 'bits',
    status: of === null ? 'holds' : 'violated',
    tried: 1,
    skipped: null,
    runs: 1,
    unsupported: 0,
    sizes: null,
    widened: [],
    seconds: 0,
    failure: of,
  });

  it('says the law, what is wrong, its cause and hint where there are, and how it was found', () => {
    expect(describeLawFailure(result('determinism', null))).toBe('');
    const text = describeLawFailure(result('determinism', failure(2)));
    const { statement, reason, choices } = laws.determinism;
    for (const line of [
      'determinism: wrong by 2.',
      `Law:    ${statement}.`,
      `Reason: ${reason}`,
      'Found:  problem 3 of this law, regime normal, as it was drawn',
      `Choice: 1 of the ${choices} forms that the law has`,
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).not.toMatch(/Cause:|Hint:/);
    const told = describeLawFailure(
      result('within-bound', failure(2, { cause: 'it is wrong', hint: 'as another', shrinks: 1 })),
    );
    expect(told).toContain(
      'Cause:  probably that it is wrong.\nHint:   as another.\nFound:  problem 3 of this law, regime normal, simplified once\n\nattention problem',
    );
    expect(describeLawFailure(result('within-bound', failure(2, { shrinks: 2 })))).toContain(
      'simplified 2 times',
    );
  });

  it('is that of the smallest problem of a cause, with what other laws say', () => {
    const results = [
      result('determinism', failure(5)),
      result('padding', failure(2)),
      result('configurations', null),
      result('merging', failure(3, { kind: { id: 'b', title: 'another', equivalents: [] } })),
    ];
    expect(
      groupFailures({ laws: results }).map(({ violations }) => violations.map(({ id }) => id)),
    ).toEqual([['determinism', 'padding'], ['merging']]);
    const text = describeFailures({ laws: results });
    expect(text.startsWith('the cause (seen by 2 laws).\n\npadding: wrong by 2.')).toBe(true);
    expect(text).toContain('Seen as well by\n  determinism: wrong by 5.\n\nmerging: wrong by 3.');
    expect(describeFailures({ laws: [results[2]] })).toBe('');
  });

  it('that nothing was tried is told by the law that ran most', () => {
    const law = (id: LawId, status: 'skipped' | 'untried', runs: number) => ({
      id,
      status,
      runs,
      skipped: `why ${id}`,
    });
    const text = (...all: ReturnType<typeof law>[]) =>
      /\((.*?)\); give/.exec(describeNothingTried({ laws: all }))?.[1];
    expect(text()).toBe('no law is left');
    expect(text(law('padding', 'skipped', 0))).toBe('padding: why padding');
    expect(
      text(law('padding', 'skipped', 0), law('merging', 'untried', 0), law('exact', 'untried', 2)),
    ).toBe('exact: why exact; and 1 more');
    expect(text(law('padding', 'skipped', 0), law('merging', 'untried', 0))).toBe(
      'merging: why merging',
    );
  });
});

describe('promises of a kernel', () => {
  const strengths = (promises: KernelPromises) => resolvePromises(promises).laws;
  const usual = (id: LawId): Law => laws[id];

  it('of laws are the usual ones, and those given', () => {
    for (const id of lawIds) {
      const { ofGradients = false, strengths: own } = usual(id);
      const isOpen = ofGradients && usual(id).usual === 'bits' && own.includes('bound');
      expect(strengths({})[id], id).toBe(isOpen ? 'bound' : usual(id).usual);
      expect(strengths({ deterministic: true })[id], id).toBe(usual(id).usual);
      for (const strength of ['bits', 'bound', 'none'] as const) {
        const isKnown = strength === 'none' || own.includes(strength);
        if (isKnown) expect(strengths({ laws: { [id]: strength } })[id]).toBe(strength);
        else expect(() => strengths({ laws: { [id]: strength } })).toThrow(RequestError);
      }
    }
    expect(() =>
      strengths({ laws: { other: 'bits' } as unknown as Record<LawId, LawStrength> }),
    ).toThrow(/no law "other"/);
  });

  it('of laws are weaker where its arithmetic leaves less', () => {
    const weakened = (premises: NonNullable<KernelPromises['premises']>) => {
      const own = strengths({ premises, deterministic: true });
      return lawIds.filter((id) => own[id] !== usual(id).usual);
    };
    expect(weakened({ outputRounding: 'stochastic' })).toEqual(
      lawIds.filter((id) => usual(id).usual === 'bits'),
    );
    for (const id of weakened({ outputRounding: 'stochastic' }))
      expect(strengths({ premises: { outputRounding: 'stochastic' } })[id]).toBe(
        usual(id).strengths.includes('bound') ? 'bound' : 'none',
      );
    expect(weakened({ maximum: 'group' })).toEqual(
      ['masked-keys', 'masked-nan-keys', 'nan-containment'].filter(
        (id) => usual(id as LawId).usual === 'bits',
      ),
    );
    expect([
      weakened({ pvAccumulator: 'fp16' }),
      weakened({ partials: 'fp16' }),
      weakened({ partials: 'bf16' }),
    ]).toEqual([['value-scaling'], ['value-scaling'], []]);
  });

  it('of gradients are those of all problems, within what the backward pass takes', () => {
    const promises = resolvePromises({
      formats: ['bf16', 'fp16'],
      features: ['mask', 'bias'],
      sizes: { keys: { min: 2, max: 99 }, queries: { max: 9 } },
      multiples: { keys: 2 },
      gradientProblems: {
        formats: ['fp16', 'fp32'],
        features: ['bias'],
        sizes: { keys: { max: 50 }, queries: { min: 4 }, vDim: { min: 0 } },
        multiples: { queries: 4 },
      },
    });
    expect(promisesOf({ ofGradients: false }, promises)).toBe(promises);
    expect(promisesOf({}, promises)).toBe(promises);
    expect(promisesOf({ ofGradients: true }, promises)).toMatchObject({
      formats: ['fp16'],
      features: ['bias'],
      multiples: { keys: 2, queries: 4 },
    });
    expect(promisesOf({ ofGradients: true }, promises).sizes).toEqual({
      keys: { min: 2, max: 50 },
      queries: { min: 4, max: 9 },
      vDim: {},
    });
    const all = resolvePromises({});
    expect(promisesOf({ ofGradients: true }, all)).toMatchObject({
      formats: all.formats,
      features: [],
      sizes: {},
    });
  });

  it('are refused where they are none', () => {
    for (const wrong of [
      { causal: 'yes' },
      { blockKeys: 0 },
      { blockKeys: 1.5 },
      { rescaleThreshold: -1 },
      { rescaleThreshold: NaN },
      { formats: ['fp12'] },
      { features: ['masks'] },
      { scales: ['none'] },
      { dims: [0] },
      { groupSizes: [] },
      { sizes: { keys: { min: 3, max: 2 } } },
      { multiples: { keys: 0 } },
      { other: 1 },
    ])
      expect(
        () => resolvePromises(wrong as unknown as KernelPromises),
        JSON.stringify(wrong),
      ).toThrow(RequestError);
    expect(resolvePromises({ rescaleThreshold: 0, blockKeys: 1 })).toMatchObject({
      rescaleThreshold: 0,
      blockKeys: 1,
    });
    expect(resolvePromises({ scoreLimit: { raw: 3 } }).scoreLimit).toEqual({
      raw: 3,
      scaled: 2 ** 20,
    });
    const premises = () => ({ maximum: 'group' }) as const;
    const own = resolvePromises({ premises }).premises;
    expect([own(null), own(variedProblem())]).toEqual([{}, { maximum: 'group' }]);
  });
});

describe('turns at sizes of production', () => {
  it('are one in eight, all three aspects in turn, other ones of other laws', () => {
    for (const id of lawIds) {
      const aspects = upTo(41).map((round) => productionAspect(id, round));
      expect(upTo(41).filter((round) => aspects[round] !== null)).toEqual([4, 12, 20, 28, 36]);
      expect(new Set([aspects[4], aspects[12], aspects[20]])).toEqual(
        new Set(['heads', 'dims', 'lengths']),
      );
      expect(aspects[28]).toBe(aspects[4]);
    }
    expect(new Set(lawIds.slice(0, 3).map((id) => productionAspect(id, 4))).size).toBe(3);
  });

  it('are as large as is wanted, within what is promised', () => {
    const of = (aspect: 'heads' | 'dims' | 'lengths', promises: KernelPromises = {}) =>
      productionSizes(resolvePromises({ blockKeys: 64, ...promises }), aspect);
    const one = { min: 1, max: 1 };
    const small = { min: 1, max: 8 };
    const maximumElements = 2 ** 20;
    expect(of('heads')).toEqual({
      batch: { min: 3, max: 4 },
      kvHeads: { min: 1, max: 2 },
      groupSize: { min: 4, max: 8 },
      queries: { min: 1, max: 4 },
      keys: { min: 1, max: 24 },
      qkDim: small,
      vDim: small,
      maximumElements,
    });
    expect(of('dims')).toEqual({
      batch: one,
      kvHeads: one,
      groupSize: one,
      queries: small,
      keys: { min: 1, max: 72 },
      dims: [64, 96, 128, 192, 256],
      maximumElements,
    });
    expect(of('lengths')).toEqual({
      batch: one,
      kvHeads: one,
      groupSize: one,
      queries: { min: 257, max: 321 },
      qkDim: small,
      vDim: small,
      keys: { min: 63, max: 193 },
      maximumElements,
    });
    expect(of('dims', { dims: [32, 64, 80] })).toMatchObject({ dims: [64, 80] });
    expect(of('dims', { dims: [32] })).toBeNull();
    expect(of('dims', { sizes: { qkDim: { max: 128 }, vDim: { min: 96 } } })).toMatchObject({
      dims: [96, 128],
    });
    expect(of('dims', { multiples: { vDim: 128 } })).toMatchObject({ dims: [128, 256] });
    expect(of('dims', { sizes: { qkDim: { max: 63 } } })).toBeNull();
    expect(of('heads', { dims: [16, 64] })).toMatchObject({ dims: [16] });
    expect(of('heads', { dims: [16, 64] })).not.toHaveProperty('qkDim');
    expect(of('heads', { groupedHeads: false })).not.toHaveProperty('groupSize');
    expect(of('heads', { groupSizes: [1, 2] })).not.toHaveProperty('groupSize');
    for (const size of [4, 8])
      expect(of('heads', { groupSizes: [1, size] })).toHaveProperty('groupSize');
    expect(of('lengths', { sizes: { queries: { max: 300 } } })).toMatchObject({
      queries: { min: 257, max: 300 },
    });
    expect(of('lengths', { sizes: { queries: { max: 20 } } })).toMatchObject({
      queries: { min: 20, max: 20 },
    });
    expect(of('lengths', { sizes: { queries: { min: 400 } } })).toMatchObject({
      queries: { min: 400, max: 400 },
    });
    expect(of('lengths', { multiples: { queries: 64 } })).toMatchObject({
      queries: { min: 320, max: 320 },
    });
    expect(
      of('lengths', { multiples: { queries: 64 }, sizes: { queries: { max: 270 } } }),
    ).not.toHaveProperty('queries');
  });
});

describe('a test of a kernel', () => {
  it('has its runs and seed from the environment, then as given, then as usual', () => {
    expect(suiteSettings({ runs: 5, seed: 7 }, {})).toEqual({
      runs: 5,
      seed: 7,
      fromEnvironment: [],
    });
    expect(
      suiteSettings({ runs: 5, seed: 7 }, { FLASHPROOF_RUNS: ' 9 ', FLASHPROOF_SEED: '-3' }),
    ).toEqual({ runs: 9, seed: -3, fromEnvironment: ['FLASHPROOF_RUNS=9'] });
    const usual = suiteSettings({}, { FLASHPROOF_RUNS: '' });
    expect([
      usual.runs,
      Number.isSafeInteger(usual.seed) && usual.seed >= 0 && usual.seed < 2 ** 31,
    ]).toEqual([25, true]);
    for (const wrong of [
      { FLASHPROOF_RUNS: '0' },
      { FLASHPROOF_RUNS: '1.5' },
      { FLASHPROOF_SEED: 'x' },
      { FLASHPROOF_SEED: '1e30' },
    ])
      expect(() => suiteSettings({}, wrong)).toThrow(RequestError);
    expect(suiteSettings({}, { FLASHPROOF_RUNS: '1', FLASHPROOF_SEED: '0' })).toMatchObject({
      runs: 1,
      seed: 0,
    });
  });

  it('is run again by a command that any shell takes', () => {
    const test = {
      name: 'x',
      file: { filepath: '/home/a/test/kernel one.test.ts' },
      suite: { name: 'mine (fast)', suite: { name: "b's" } },
    };
    const settings = { runs: 1, seed: 4, fromEnvironment: ['FLASHPROOF_RUNS=2'] };
    expect(replayCommand(test, 'padding:', settings, '/home/a')).toBe(
      `FLASHPROOF_SEED=4 FLASHPROOF_RUNS=2 npx vitest run "test/kernel one.test.ts" -t '^b'\\''s mine \\(fast\\) padding:'`,
    );
    const plain = { name: 'x', file: { filepath: '/home/a/k.test.ts' } };
    expect(replayCommand(plain, 'padding:', { ...settings, fromEnvironment: [] }, '/home/a')).toBe(
      'FLASHPROOF_SEED=4 npx vitest run k.test.ts -t "^padding:"',
    );
  });
});
