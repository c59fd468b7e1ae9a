import { describe, expect, it } from 'vitest';
import { exactAngles } from '../../../../oracles/index.js';
import { auditPrologue } from '../../../../src/audit/index.js';
import { loadMpfr } from '../../../oracles/mpfr.js';
import { scaled, testSeed } from '../../../setup/effort.js';
import {
  drawPrologue,
  judgedPrologue,
  type ProloguePlan,
  type PrologueMistake,
} from './plain-prologue.js';

const mpfr = await loadMpfr();

describe('right prologues', () => {
  it('pass, whatever their order of operations', () => {
    for (let seed = 0; seed < scaled(60); seed++) {
      const plan = drawPrologue(seed + testSeed);
      if (!plan.hasRope && plan.epsilon === null && plan.factor === 1) continue;
      const { verdict, checks } = auditPrologue(judgedPrologue(plan, {}, seed % 2 === 0));
      expect(verdict.sentence, `seed ${seed + testSeed}`).toMatch(/^PASS/);
      for (const { worstShare } of checks) expect(worstShare ?? 0).toBeLessThanOrEqual(1);
    }
  });
});

describe('prologues that numbers say little of', () => {
  const still = { ...drawPrologue(testSeed), hasRope: true, positions: [0, 0, 0, 0, 0, 0] };

  it('are not judged where nothing is given but zeros', () => {
    const zeros = { ...still, inputs: { ...still.inputs, q: still.inputs.q.map(() => 0) } };
    const { verdict } = auditPrologue(judgedPrologue(zeros));
    expect(verdict.sentence).toMatch(/^NOT JUDGED: every number of q is 0/);
  });

  it('are not judged where a right kernel may have any number', () => {
    const given = judgedPrologue({ ...still, epsilon: 1e-5, order: 'rope-norm' });
    const parts = given.parts.map((part) => {
      const { prologue } = part;
      if (prologue === null || prologue.rotary === null) return part;
      const { cos } = prologue.rotary.tables;
      const wide = new Float64Array(cos.data.length).fill(1e3);
      const rotary = { ...prologue.rotary, errors: { cos: wide, sin: wide } };
      return { ...part, prologue: { ...prologue, rotary } };
    });
    const { verdict } = auditPrologue({ ...given, parts });
    expect(verdict.status).toBe('NOT JUDGED');
    expect(verdict.sentence).toContain('no number of q has a bound');
  });

  it('pass with a remark where no position is rotated, or angles are coarse in fp32', () => {
    expect(auditPrologue(judgedPrologue(still)).verdict.notes).toContain(
      'every position is 0, where a rotation does nothing',
    );
    const far = drawPrologue(testSeed, {
      tokens: 2,
      columns: 16,
      dims: 16,
      tables: null,
      hasRope: true,
      base: 10000,
      positions: [70000, 70001],
    });
    const { verdict } = auditPrologue(judgedPrologue(far));
    expect(verdict.pass).toBe(true);
    expect(verdict.notes[0]).toMatch(/angles that a kernel makes in fp32 err by up to/);
  });
});

describe('angles of rotations', () => {
  it('are within their radius of those in arithmetic of 200 bits', () => {
    const positions = [0, 1, 77, 4095, 131071, 1048575];
    for (const base of [10000, 500000, 1e6]) {
      const { cos, sin } = exactAngles(positions, { base, dims: 64, pairs: 32, factor: 1 });
      mpfr.withPrecision(200, (a) => {
        for (const [row, position] of positions.entries())
          for (const t of [0, 1, 15, 31]) {
            const exponent = a.divide(a.of(2 * t), a.of(64));
            const log = a.multiply(a.log(a.of(base)), exponent);
            const angle = a.divide(a.of(position), a.exp(log));
            expect(a.distance(a.cos(angle), cos[row * 32 + t])).toBeLessThan(2 ** -50);
            expect(a.distance(a.sin(angle), sin[row * 32 + t])).toBeLessThan(2 ** -50);
          }
      });
    }
  });
});

/** A whole prologue in which each fault shows. */
const whole: Partial<ProloguePlan> = {
  columns: 32,
  dims: 32,
  first: 0,
  hasRope: true,
  epsilon: 1e-5,
  offset: 0,
  normFormat: null,
  order: 'norm-rope',
  factor: 32 ** -0.5,
  output: 'bf16',
  inputFormat: 'bf16',
  base: 10000,
};
const partial = { ...whole, dims: 16 };
const made = { ...whole, tables: null };

const planted: readonly (readonly [string, string, Partial<ProloguePlan>, PrologueMistake])[] = [
  [
    'interleaved for halves',
    'rope-interleaved',
    { ...whole, layout: 'halves' },
    { layout: 'neighbours' },
  ],
  [
    'halves for interleaved',
    'rope-interleaved',
    { ...whole, layout: 'neighbours' },
    { layout: 'halves' },
  ],
  ['position one off', 'rope-position', whole, { position: (i, p) => p.positions[i] + 1 }],
  [
    'position one off of k',
    'rope-position',
    whole,
    { onlyOf: 'k', position: (i, p) => p.positions[i] + 1 },
  ],
  [
    'position of another token',
    'rope-position',
    whole,
    { position: (i, p) => p.positions[Math.max(0, i - 1)] },
  ],
  ['positions without the cache', 'rope-offset', whole, { onlyOf: 'k', position: (i) => i % 3 }],
  ['another base', 'rope-base', made, { base: 500000 }],
  ['all columns rotated', 'rope-dims', { ...partial, tables: null }, { dims: 32 }],
  [
    'frequencies of all columns',
    'rope-frequencies',
    { ...partial, tables: null },
    { exponentDims: 32 },
  ],
  ['last columns rotated', 'rope-columns', partial, { first: 16 }],
  ['sign of the sine', 'rope-backwards', whole, { sign: -1 }],
  ['no rotation', 'rope-missing', whole, { times: 0 }],
  ['rotated twice', 'rope-twice', whole, { times: 2 }],
  ['cosine and sine exchanged', 'rope-cos-sin', whole, { isSwapped: true }],
  [
    'tables in bf16',
    'rope-table-format',
    { ...whole, tables: 'fp32', output: 'fp32' },
    { tableFormat: 'bf16' },
  ],
  ['no norm', 'norm-missing', whole, { hasNoNorm: true }],
  ['another epsilon', 'norm-epsilon', { ...whole, epsilon: 1e-3 }, { epsilon: 1e-6 }],
  [
    'epsilon outside of the root',
    'norm-epsilon-outside',
    { ...whole, epsilon: 1e-3 },
    { isOutside: true },
  ],
  ['sum of squares', 'norm-sum', whole, { isSum: true }],
  ['layer norm', 'norm-centred', whole, { isCentred: true }],
  ['norm over all heads', 'norm-over-heads', whole, { overToken: true }],
  [
    'gain of another head',
    'gain-of-other-head',
    whole,
    { gain: (gain, { columns }) => gain.map((_, i) => gain[(i + columns) % gain.length]) },
  ],
  ['no gain', 'gain-missing', whole, { gain: (gain) => gain.map(() => 1) }],
  ['gain without its 1', 'gain-offset', { ...whole, offset: 1 }, { offset: 0 }],
  [
    'gain of k for q',
    'gain-of-other-tensor',
    { ...whole, heads: { q: 2, k: 2 } },
    { onlyOf: 'q', gain: (_, { gains }) => gains.k },
  ],
  ['normed numbers rounded', 'norm-rounded', whole, { normFormat: 'bf16' }],
  [
    'normed numbers not rounded',
    'norm-unrounded',
    { ...whole, normFormat: 'bf16' },
    { normFormat: null },
  ],
  ['norm behind the rotation', 'norm-order', whole, { order: 'rope-norm' }],
  ['scale twice', 'scale-twice', whole, { factor: (x) => x * x }],
  ['no scale', 'scale-missing', whole, { factor: () => 1 }],
  ['scale of base 2', 'scale-log2e', whole, { factor: (x) => x * Math.LOG2E }],
  ['scale on k', 'scale-of-other-tensor', whole, { scalesKeys: true }],
  ['values rotated', 'rope-on-values', whole, { rotatesValues: true }],
];

describe('planted faults', () => {
  it.each(planted)('%s is named %s', (_, id, fixed, mistake) => {
    for (let seed = 0; seed < scaled(4); seed++) {
      const plan = drawPrologue(seed + testSeed, fixed);
      const { verdict } = auditPrologue(judgedPrologue(plan, mistake));
      expect(verdict.pass, `seed ${seed + testSeed}`).toBe(false);
      expect(verdict.diagnosis?.id, `seed ${seed + testSeed}: ${verdict.sentence}`).toBe(id);
    }
  });

  it('a number that nothing explains is named with its place', () => {
    const plan = drawPrologue(testSeed, whole);
    const given = judgedPrologue(plan);
    const [q, ...others] = given.parts;
    const data = (q.output.data as Uint16Array).map((x, i) => (i === 70 ? x ^ 0x40 : x));
    const { verdict } = auditPrologue({
      ...given,
      parts: [{ ...q, output: { ...q.output, data } }, ...others],
    });
    expect(verdict.diagnosis?.id).toBe('unexplained');
    expect(verdict.sentence).toMatch(/q, token 0, head 2, column 6: got/);
  });
});
