import { decodePlain, encodePlain } from './plain-codes.js';
import { plainFactor, type Faults, type Plan, type PlannedScaling } from './plain-writer.js';
import type { Fixed } from './drawn-plan.js';

const usual = { division: 'divide', floor: null, global: 1, perHead: true } as const;
/** e4m3 with a factor a token and head. */
const byToken: PlannedScaling = {
  ...usual,
  code: 'fp32',
  columns: 64,
  layout: 'nhd',
  rule: 'amax',
  maximum: 448,
};
const byBlock: PlannedScaling = { ...byToken, columns: 16 };
const int8: PlannedScaling = { ...byToken, maximum: 127 };
const powers: PlannedScaling = { ...byToken, rule: 'power-up' };
const mx: PlannedScaling = {
  ...usual,
  code: 'e8m0',
  columns: 32,
  layout: '128x4',
  rule: 'mx-floor',
  maximum: 448,
};
const nvfp4: PlannedScaling = {
  ...usual,
  code: 'e4m3',
  columns: 16,
  layout: 'tokens-of-4',
  rule: 'amax',
  maximum: 6,
  global: 0.125,
};

const base = {
  tokens: 6,
  heads: 4,
  columns: 64,
  blocks: 4,
  blockSize: 8,
  slots: [3, 4, 5, 16, 17, 18],
  layouts: ['nhd', 'nhd'],
  spread: 4,
  rope: false,
  norm: false,
} as const satisfies Fixed;
const plain = { ...base, code: 'bf16' } as const satisfies Fixed;
const fp8 = { ...base, code: 'e4m3', scaling: byToken } as const satisfies Fixed;
const roped = { ...fp8, rope: true } as const satisfies Fixed;

/** A fault that is planted in a write. */
export interface PlantedFault {
  readonly name: string;
  /** The cause that has to be named. */
  readonly id: string;
  /** What the cause has to say. */
  readonly says?: RegExp;
  readonly fixed: Fixed;
  readonly faults: (plan: Plan) => Faults;
  /** Changes the input before the write. */
  readonly inputs?: (inputs: Float64Array) => void;
  /** Whether the writer's rule is declared; default true. */
  readonly declared?: boolean;
}

const f32 = Math.fround;

function encodeAs(
  code: Parameters<typeof encodePlain>[0],
  truncates = false,
): NonNullable<Faults['encode']> {
  return (x) => encodePlain(code, x, truncates);
}

function nextHead(heads: number, by = 1) {
  return (head: number) => (head + by + heads) % heads;
}

/** Faults of slots. */
export const slotFaults: readonly PlantedFault[] = [
  {
    name: 'slot + 1',
    id: 'slot-shifted',
    says: /1 slot behind/,
    fixed: plain,
    faults: () => ({ slots: (slot) => [slot + 1] }),
  },
  {
    name: 'slot - 1',
    id: 'slot-shifted',
    says: /1 slot before/,
    fixed: fp8,
    faults: () => ({ slots: (slot) => [slot - 1] }),
  },
  {
    name: 'blocks of 16',
    id: 'block-size',
    says: /blocks of 16, where blocks have 8/,
    fixed: { ...fp8, blocks: 6 },
    faults: () => ({ slots: (slot) => [Math.floor(slot / 8) * 16 + (slot % 8)] }),
  },
  {
    name: 'another page for three tokens',
    id: 'page-stale',
    says: /tokens 3 to 5 are stored in another page.*page 3, of no|page 3, not 2/,
    fixed: fp8,
    faults: () => ({ slots: (slot) => [slot >= 16 ? slot + 8 : slot] }),
  },
  {
    name: 'one token in a wrong slot',
    id: 'wrong-slot',
    says: /token 2 in 30, not in 5/,
    fixed: fp8,
    faults: () => ({ slots: (slot, token) => [token === 2 ? 30 : slot] }),
  },
  {
    name: 'written twice',
    id: 'stored-twice',
    says: /token 1 is stored twice: in slot 4, and in slot 27/,
    fixed: fp8,
    faults: () => ({ slots: (slot, token) => (token === 1 ? [slot, 27] : [slot]) }),
  },
  {
    name: '-1 stored in the last slot',
    id: 'skipped-token-stored',
    says: /token 1 .* slot 31/,
    fixed: { ...fp8, slots: [3, -1, 5, 16, 17, 18] },
    faults: () => ({ slots: (slot) => [slot < 0 ? 31 : slot] }),
  },
  {
    name: 'tail missing',
    id: 'tail-missing',
    says: /last 2 tokens are not stored: tokens 4 to 5/,
    fixed: fp8,
    faults: () => ({ slots: (slot, token) => (token >= 4 ? [] : [slot]) }),
  },
  {
    name: 'a token in the middle missing',
    id: 'not-stored',
    says: /token 2 is not stored/,
    fixed: plain,
    faults: () => ({ slots: (slot, token) => (token === 2 ? [] : [slot]) }),
  },
  {
    name: 'another slot overwritten',
    id: 'other-bytes-overwritten',
    says: /slot 9/,
    fixed: plain,
    faults: () => ({
      afterwards: (buffers) => buffers.get('key_cache')?.fill(0, 9 * 512, 9 * 512 + 8),
    }),
  },
];

/** Faults of heads, tensors and layouts. */
export const layoutFaults: readonly PlantedFault[] = [
  {
    name: 'K and V swapped',
    id: 'tensors-swapped',
    fixed: fp8,
    faults: () => ({ row: (part, token, head) => [1 - part, token, head] }),
  },
  {
    name: 'heads in reverse',
    id: 'head-order',
    says: /reverse/,
    fixed: fp8,
    faults: () => ({ row: (part, token, head) => [part, token, 3 - head] }),
  },
  {
    name: 'heads moved by one',
    id: 'head-order',
    says: /the head behind/,
    fixed: plain,
    faults: () => ({ row: (part, token, head) => [part, token, (head + 1) % 4] }),
  },
  {
    name: 'HND for NHD',
    id: 'layout',
    says: /layout hnd/,
    fixed: plain,
    faults: () => ({ layout: 'hnd' }),
  },
  {
    name: 'factors of V swizzled',
    id: 'factor-order',
    says: /factors of v are stored in the order tokens-of-4/,
    fixed: { ...base, code: 'e2m1', scaling: { ...nvfp4, layout: 'hnd' } },
    faults: () => ({ factorLayout: (part) => (part === 1 ? 'tokens-of-4' : 'hnd') }),
  },
  {
    name: 'factors linear for 128x4',
    id: 'factor-order',
    says: /order linear/,
    fixed: { ...base, code: 'e4m3', scaling: mx },
    faults: () => ({ factorLayout: () => 'nhd' }),
  },
];

/** Faults of norm and rotation. */
export const valueFaults: readonly PlantedFault[] = [
  {
    name: 'position + 1',
    id: 'rope-position',
    says: /behind/,
    fixed: roped,
    faults: (plan) => ({ position: (token) => plan.positions[token] + 1 }),
  },
  {
    name: 'position - 1',
    id: 'rope-position',
    says: /before \(k\)/,
    fixed: roped,
    faults: (plan) => ({ position: (token) => plan.positions[token] - 1 }),
  },
  {
    name: 'the other pairs',
    id: 'rope-interleaved',
    fixed: roped,
    faults: (plan) => ({ ropeLayout: plan.rope?.layout === 'halves' ? 'neighbours' : 'halves' }),
  },
  {
    name: 'no rotation',
    id: 'rope-missing',
    fixed: { ...plain, rope: true },
    faults: () => ({ withoutRope: true }),
  },
  {
    name: 'epsilon 1e-3',
    id: 'norm-epsilon',
    says: /0.001/,
    fixed: { ...plain, norm: true },
    faults: () => ({ epsilon: f32(1e-3) }),
  },
  {
    name: 'gain of the next head',
    id: 'gain-of-other-head',
    fixed: { ...plain, norm: true },
    faults: (plan) => ({ gainHead: nextHead(plan.heads) }),
  },
];

/** Faults of factors. */
export const factorFaults: readonly PlantedFault[] = [
  {
    name: 'reciprocal stored',
    id: 'factor-reciprocal',
    fixed: fp8,
    faults: () => ({ storedFactor: (x) => f32(1 / x) }),
  },
  {
    name: 'multiplied',
    id: 'factor-multiplied',
    fixed: fp8,
    faults: () => ({ divide: (x, s) => f32(x * s) }),
  },
  {
    name: 'divided by the factor of the next head',
    id: 'factor-of-other-head',
    says: /divided by the factor of the head behind/,
    fixed: fp8,
    faults: () => ({ divisor: (part, token, head, group) => [part, token, (head + 1) % 4, group] }),
  },
  {
    name: 'stored factor of the next head',
    id: 'factor-of-other-head',
    says: /stored is that of the head behind/,
    fixed: fp8,
    faults: () => ({ stored: (part, token, head, group) => [part, token, (head + 1) % 4, group] }),
  },
  {
    name: 'divided by the factor of the token before',
    id: 'factor-of-other-token',
    fixed: fp8,
    faults: () => ({ divisor: (part, token, head, group) => [part, (token + 5) % 6, head, group] }),
  },
  {
    name: 'divided by the factor of the block behind',
    id: 'factor-of-other-block',
    fixed: { ...fp8, scaling: byBlock },
    faults: () => ({ divisor: (part, token, head, group) => [part, token, head, (group + 1) % 4] }),
  },
  {
    name: 'factor of K for V',
    id: 'factor-of-other-tensor',
    fixed: fp8,
    faults: () => ({
      divisor: (_part, token, head, group) => [0, token, head, group],
      stored: (_part, token, head, group) => [0, token, head, group],
    }),
  },
  {
    name: 'amax before rope',
    id: 'amax-before-rope',
    fixed: { ...roped, scaling: byBlock },
    faults: () => ({ sizedBeforeRope: true }),
  },
  {
    name: 'amax over half a block',
    id: 'amax-half-block',
    says: /first half/,
    fixed: fp8,
    faults: () => ({ sized: (group, columns) => [group * columns, group * columns + columns / 2] }),
  },
  {
    name: 'amax without sign',
    id: 'amax-without-sign',
    fixed: fp8,
    faults: () => ({ sizeOf: (x) => Math.max(x, 0) }),
  },
  {
    name: 'amax/240',
    id: 'factor-maximum',
    says: /amax\/240/,
    fixed: fp8,
    faults: (plan) => ({
      factor: (amax) => plainFactor(amax, { ...byToken, maximum: 240 }, plan.code),
    }),
  },
  {
    name: 'power of two rounded down',
    id: 'power-rounding',
    says: /floor/,
    fixed: { ...fp8, scaling: powers },
    faults: (plan) => ({
      factor: (amax) => plainFactor(amax, { ...powers, rule: 'mx-floor' }, plan.code),
    }),
  },
  {
    name: 'exponent rounded up',
    id: 'power-rounding',
    says: /ceil/,
    fixed: { ...base, code: 'e4m3', scaling: mx },
    faults: (plan) => ({
      factor: (amax) => plainFactor(amax, { ...mx, rule: 'mx-ceil' }, plan.code),
    }),
  },
  {
    name: 'global factor forgotten in the numbers',
    id: 'global-factor-missing',
    fixed: { ...base, code: 'e2m1', scaling: nvfp4 },
    faults: () => ({ divide: (x, s) => f32(x / s) }),
  },
];

/** Faults of rounding and of special values. */
export const roundingFaults: readonly PlantedFault[] = [
  {
    name: 'truncation to bf16',
    id: 'truncation',
    fixed: { ...plain, rope: true },
    faults: () => ({ encode: encodeAs('bf16', true) }),
  },
  {
    name: 'truncation to e4m3',
    id: 'truncation',
    fixed: fp8,
    faults: () => ({ encode: encodeAs('e4m3', true) }),
  },
  {
    name: 'truncation to int8',
    id: 'truncation',
    fixed: { ...base, code: 'int8', scaling: int8 },
    faults: () => ({ encode: encodeAs('int8', true) }),
  },
  {
    name: 'no saturation',
    id: 'no-saturation',
    fixed: { ...base, code: 'e4m3', spread: 0 },
    inputs: (x) => x.forEach((y, i) => (x[i] = y * 256)),
    faults: () => ({
      encode: (x) => (Math.abs(x) > 464 ? (x < 0 ? 0xff : 0x7f) : encodePlain('e4m3', x)),
    }),
  },
  {
    name: 'saturation at 240',
    id: 'saturation-maximum',
    fixed: fp8,
    faults: () => ({ encode: (x) => encodePlain('e4m3', Math.max(-240, Math.min(240, x))) }),
  },
  {
    name: 'e4m3fnuz',
    id: 'other-format',
    says: /e4m3fnuz/,
    fixed: fp8,
    faults: () => ({ encode: encodeAs('e4m3fnuz') }),
  },
  {
    name: '-0 of e4m3fnuz',
    id: 'negative-zero',
    fixed: { ...base, spread: 12, code: 'e4m3fnuz', scaling: { ...byToken, maximum: 240 } },
    faults: () => ({
      encode: (x) => {
        const code = encodePlain('e4m3fnuz', x);
        return code === 0 && (x < 0 || Object.is(x, -0)) ? 0x80 : code;
      },
    }),
  },
  {
    name: 'rounded to bf16 first',
    id: 'rounded-twice',
    fixed: fp8,
    faults: () => ({
      encode: (x) => encodePlain('e4m3', decodePlain('bf16', encodePlain('bf16', x))),
    }),
  },
  {
    name: 'nibbles exchanged',
    id: 'nibbles-exchanged',
    fixed: { ...base, code: 'e2m1', scaling: nvfp4 },
    faults: () => ({
      afterwards: (buffers) =>
        ['key_cache', 'value_cache'].forEach((name) => swapNibbles(buffers.get(name))),
    }),
  },
  {
    name: 'NaN as the largest number',
    id: 'nan-as-number',
    fixed: { ...base, code: 'e4m3' },
    inputs: (x) => (x[70] = NaN),
    faults: () => ({ encode: (x) => encodePlain('e4m3', Number.isNaN(x) ? 448 : x) }),
  },
];

function swapNibbles(bytes: Uint8Array | undefined): void {
  // Only bytes of the written slots: 4 heads of 32 bytes.
  for (const slot of base.slots)
    for (let i = slot * 128; bytes !== undefined && i < (slot + 1) * 128; i++)
      bytes[i] = (bytes[i] >> 4) | ((bytes[i] & 0xf) << 4);
}

export const plantedFaults = [
  ...slotFaults,
  ...layoutFaults,
  ...valueFaults,
  ...factorFaults,
  ...roundingFaults,
];
