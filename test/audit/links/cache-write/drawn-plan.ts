import {
  factorLayouts,
  fieldOf,
  numberLayouts,
  usualRounding,
  type CachePart,
  type CacheWrite,
  type CodeName,
  type Field,
} from '../../../../src/problem/index.js';
import { encodeFromFloat64, formats, type Tensor } from '../../../../src/formats/index.js';
import { bitsOf, decodePlain, encodePlain } from './plain-codes.js';
import {
  bufferName,
  sizesOf,
  type Plan,
  type PlannedScaling,
  type Written,
} from './plain-writer.js';

/** Random numbers below 1. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const unscaled = { code: 'bf16', scaling: null } as const;

/** Kinds of caches that are drawn: their numbers and factors. */
function kinds(
  draw: () => number,
): { readonly code: CodeName; readonly scaling: PlannedScaling | null }[] {
  const division = draw() < 0.5 ? 'divide' : 'reciprocal';
  const usual = { division, floor: null, global: 1, perHead: true } as const;
  const floor =
    draw() < 0.5
      ? ({ of: 'amax', least: 1e-10 } as const)
      : ({ of: 'factor', least: 1e-12 } as const);
  const mx = (['mx-floor', 'mx-ceil', 'mx-even', 'power-up'] as const)[Math.floor(draw() * 4)];
  return [
    unscaled,
    { code: 'fp16', scaling: null },
    { code: 'fp32', scaling: null },
    { code: 'e4m3', scaling: null },
    {
      code: 'e4m3',
      scaling: {
        ...usual,
        code: 'fp32',
        columns: 32,
        layout: 'nhd',
        rule: 'amax',
        maximum: 448,
        floor,
      },
    },
    {
      code: 'e4m3',
      scaling: {
        ...usual,
        code: 'fp32',
        columns: 16,
        layout: 'hnd',
        rule: 'power-up',
        maximum: 448,
      },
    },
    {
      code: 'e5m2',
      scaling: { ...usual, code: 'bf16', columns: 32, layout: 'nhd', rule: 'amax', maximum: 57344 },
    },
    {
      code: 'e4m3fnuz',
      scaling: {
        ...usual,
        code: 'fp32',
        columns: 32,
        layout: 'nhd',
        rule: 'amax',
        maximum: 240,
        perHead: false,
      },
    },
    {
      code: 'int8',
      scaling: { ...usual, code: 'fp32', columns: 32, layout: 'nhd', rule: 'amax', maximum: 127 },
    },
    {
      code: 'int8',
      scaling: {
        ...usual,
        code: 'fp32',
        columns: 32,
        layout: 'nhd',
        rule: 'amax',
        maximum: 127,
        perHead: false,
      },
    },
    {
      code: 'e4m3',
      scaling: { ...usual, code: 'e8m0', columns: 32, layout: '128x4', rule: mx, maximum: 448 },
    },
    {
      code: 'e2m1',
      scaling: {
        ...usual,
        code: 'e4m3',
        columns: 16,
        layout: '128x4',
        rule: 'amax',
        maximum: 6,
        global: Math.fround(0.0123),
      },
    },
    {
      code: 'e2m1',
      scaling: {
        ...usual,
        code: 'e4m3',
        columns: 16,
        layout: 'tokens-of-4',
        rule: 'amax',
        maximum: 6,
        global: 0.25,
      },
    },
  ];
}

/** What of a plan a test may fix. */
export type Fixed = Partial<
  Pick<
    Plan,
    | 'tokens'
    | 'heads'
    | 'columns'
    | 'code'
    | 'scaling'
    | 'layouts'
    | 'slots'
    | 'blocks'
    | 'blockSize'
  >
> & {
  readonly rope?: boolean | undefined;
  readonly norm?: boolean | undefined;
  readonly spread?: number;
};

function shuffled(count: number, draw: () => number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(draw() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function inputOf(
  format: 'bf16' | 'fp16' | 'fp32',
  count: number,
  spread: number,
  draw: () => number,
): Float64Array {
  return Float64Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
    const x = draw() < 0.02 ? 0 : normal * 2 ** Math.floor((draw() - 0.5) * spread);
    return decodePlain(format, encodePlain(format, Math.fround(x)));
  });
}

/** A random write. */
export function drawPlan(seed: number, fixed: Fixed = {}): Plan {
  const draw = randomNumbers(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(draw() * all.length)];
  const all = kinds(draw);
  const kind =
    fixed.code === undefined ? pick(all) : { code: fixed.code, scaling: fixed.scaling ?? null };
  const isShort = kind.scaling?.layout === 'tokens-of-4';
  const columns = fixed.columns ?? (isShort ? 64 : pick([32, 64]));
  const [heads, tokens] = [fixed.heads ?? pick([1, 2, 3]), fixed.tokens ?? pick([1, 3, 6])];
  const [blocks, blockSize] = [fixed.blocks ?? 3, fixed.blockSize ?? pick([4, 8])];
  const inputFormat =
    kind.code === 'fp16' || kind.code === 'fp32'
      ? kind.code
      : pick(['bf16', 'fp16', 'fp32'] as const);
  const layouts =
    fixed.layouts ??
    pick([
      ['nhd', 'nhd'],
      ['hnd', 'hnd'],
      ['joined-nhd', 'joined-nhd'],
      ['joined-hnd', 'joined-hnd'],
      ['x-packed', 'transposed'],
    ] as const);
  const order = shuffled(blocks * blockSize, draw);
  const slots =
    fixed.slots ?? Array.from({ length: tokens }, (_, i) => (draw() < 0.1 ? -1 : order[i]));
  const count = tokens * heads * columns;
  const spread = fixed.spread ?? pick([0, 4, 12]);
  const pairs = pick([columns / 2, columns / 4]);
  const positions = Array.from({ length: tokens }, () => 1 + Math.floor(draw() * 14));
  const angles = Array.from(
    { length: 16 * pairs },
    (_, i) => Math.floor(i / pairs) / 100 ** ((i % pairs) / pairs),
  );
  const perHead = draw() < 0.5;
  const withRope = fixed.rope ?? draw() < 0.4;
  const withNorm = fixed.norm ?? draw() < 0.3;
  return {
    tokens,
    heads,
    columns,
    blockSize,
    blocks,
    inputFormat,
    layouts,
    slots,
    positions,
    code: kind.code,
    scaling: kind.scaling,
    inputs: [inputOf(inputFormat, count, spread, draw), inputOf(inputFormat, count, spread, draw)],
    rope: withRope
      ? {
          layout: pick(['halves', 'neighbours'] as const),
          pairs,
          cos: Float32Array.from(angles, Math.cos),
          sin: Float32Array.from(angles, Math.sin),
        }
      : null,
    norm: withNorm
      ? {
          epsilon: Math.fround(1e-6),
          perHead,
          gain: Float32Array.from({ length: heads * columns }, () => 0.5 + draw()),
        }
      : null,
    old: (index) => (Math.imul(index + seed, 0x9e3779b1) >>> 13) & 0xff,
  };
}

function tensorOf(
  format: Plan['inputFormat'],
  shape: readonly number[],
  values: Float64Array,
): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

function numberField(plan: Plan, part: number): Field {
  const { heads, columns, blockSize, blocks, code } = plan;
  const sizes = { slots: blocks * blockSize, heads, columns, part };
  const layout = numberLayouts[plan.layouts[part] as 'nhd'];
  return fieldOf(
    layout,
    sizes,
    { buffer: bufferName(plan, part, false), code },
    { B: blockSize, X: 128 / bitsOf[code] },
  );
}

function factorField(plan: Plan, part: number, { code, layout, perHead }: PlannedScaling): Field {
  const { heads, columns } = sizesOf(plan, part, true);
  const sizes = { slots: plan.blocks * plan.blockSize, heads, columns, part };
  const words =
    layout === 'nhd'
      ? perHead
        ? 'slot head column'
        : 'slot column'
      : factorLayouts[layout as '128x4'];
  return fieldOf(
    words,
    sizes,
    { buffer: bufferName(plan, part, true), code },
    { B: plan.blockSize, G: columns / 4 },
  );
}

/** What is declared of a write. */
export interface Declared {
  /** Whether the rule of factors is. */
  readonly rule?: boolean;
  readonly division?: boolean;
  readonly before?: boolean;
}

/** The write as it is audited. */
export function auditedWrite(
  plan: Plan,
  { before, after }: Written,
  declared: Declared = {},
): CacheWrite {
  const { tokens, heads, columns, scaling, rope, norm, blockSize } = plan;
  const parts = ([0, 1] as const).map((part): CachePart => {
    const hasPrologue = part === 0 && (rope !== null || norm !== null);
    return {
      name: part === 0 ? 'k' : 'v',
      input: tensorOf(plan.inputFormat, [tokens, heads, columns], plan.inputs[part]),
      prologue: hasPrologue
        ? {
            norm:
              norm === null
                ? null
                : {
                    gain: {
                      format: 'fp32',
                      shape: norm.perHead ? [heads, columns] : [columns],
                      data: norm.gain.slice(0, norm.perHead ? heads * columns : columns),
                    },
                    epsilon: norm.epsilon,
                    offset: 0,
                  },
            rotary:
              rope === null
                ? null
                : {
                    tables: {
                      cos: { format: 'fp32', shape: [16, rope.pairs], data: rope.cos },
                      sin: { format: 'fp32', shape: [16, rope.pairs], data: rope.sin },
                    },
                    layout: rope.layout,
                    positions: Int32Array.from(plan.positions),
                  },
            rounding: 'fp32',
          }
        : null,
      numbers: numberField(plan, part),
      scaling:
        scaling === null
          ? null
          : {
              factors: factorField(plan, part, scaling),
              columns: scaling.columns,
              global: scaling.global,
              rule: declared.rule === true ? scaling.rule : null,
              maximum: declared.rule === true ? scaling.maximum : null,
              floor: declared.rule === true ? (scaling.floor ?? 'none') : null,
              division: declared.division === true ? scaling.division : null,
            },
      rounding: usualRounding,
    };
  });
  return {
    tokens,
    parts,
    slots: Int32Array.from(plan.slots),
    blockSize,
    table: null,
    after,
    before: declared.before === false ? null : before,
  };
}

/** A plan in words, without its numbers. */
export function describePlan({ rope, norm, scaling, ...plan }: Plan): string {
  const { tokens, heads, columns, code, layouts, inputFormat, slots } = plan;
  return JSON.stringify({
    tokens,
    heads,
    columns,
    code,
    layouts,
    inputFormat,
    slots,
    scaling,
    rope: rope?.layout,
    norm: norm?.perHead,
  });
}
