import { computedTables } from '../../../../oracles/index.js';
import type { GivenPrologue, JudgedPart } from '../../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../../src/formats/index.js';
import type { Prologue, Rotary } from '../../../../src/problem/index.js';
import { randomNumbers } from '../cache-write/drawn-plan.js';

type Short = 'fp32' | 'bf16' | 'fp16';
const f32 = Math.fround;

/** A prologue as a kernel is told it, and inputs. */
export interface ProloguePlan {
  readonly tokens: number;
  readonly heads: { readonly q: number; readonly k: number };
  readonly columns: number;
  readonly positions: readonly number[];
  readonly sequences: readonly number[];
  readonly layout: 'halves' | 'neighbours';
  /** Columns that are rotated, from `first` on. */
  readonly dims: number;
  readonly first: number;
  readonly base: number;
  /** Tables that the kernel is given, in this format; null where it makes its own. */
  readonly tables: Short | null;
  readonly hasRope: boolean;
  readonly epsilon: number | null;
  readonly offset: 0 | 1;
  readonly normFormat: 'bf16' | 'fp16' | null;
  readonly order: 'norm-rope' | 'rope-norm';
  readonly factor: number;
  readonly output: Short;
  readonly inputs: Readonly<Record<'q' | 'k' | 'v', Float64Array>>;
  readonly gains: Readonly<Record<'q' | 'k', Float64Array>>;
  readonly inputFormat: Short;
}

/** What a kernel does by mistake, tensor by tensor; left out: what it has to. */
export interface PrologueMistake {
  readonly layout?: ProloguePlan['layout'];
  readonly position?: (token: number, plan: ProloguePlan) => number;
  readonly onlyOf?: 'q' | 'k';
  readonly base?: number;
  readonly dims?: number;
  readonly exponentDims?: number;
  readonly first?: number;
  readonly sign?: -1;
  readonly times?: 0 | 2;
  readonly isSwapped?: boolean;
  readonly tableFormat?: 'bf16' | 'fp16';
  readonly epsilon?: number;
  readonly isOutside?: boolean;
  readonly hasNoNorm?: boolean;
  readonly isSum?: boolean;
  readonly isCentred?: boolean;
  readonly overToken?: boolean;
  readonly gain?: (gain: Float64Array, plan: ProloguePlan, name: 'q' | 'k') => Float64Array;
  readonly offset?: 0 | 1;
  readonly normFormat?: ProloguePlan['normFormat'];
  readonly order?: ProloguePlan['order'];
  readonly factor?: (factor: number) => number;
  readonly scalesKeys?: boolean;
  readonly rotatesValues?: boolean;
}

/** A number in a format, rounded once. */
function rounded(x: number, format: Short): number {
  const data = encodeFromFloat64(formats[format], Float64Array.of(x));
  return decodeTensor({ format, shape: [1], data })[0];
}

/** Cosine and sine of a pair, as a kernel has them. */
function tableAt(plan: ProloguePlan, position: number, t: number, mistake: PrologueMistake) {
  const { tables, base, dims } = { ...plan, ...mistake, tables: plan.tables };
  const exponent = (2 * t) / (mistake.exponentDims ?? dims);
  const store = (x: number) =>
    mistake.tableFormat === undefined ? x : rounded(x, mistake.tableFormat);
  if (tables !== null) {
    const angle = position * base ** -exponent;
    const of = (x: number) => store(rounded(x, tables));
    return [of(Math.cos(angle)), of(Math.sin(angle))];
  }
  const frequency = f32(1 / f32(base ** f32(exponent)));
  const angle = f32(position * frequency);
  return [store(f32(Math.cos(angle))), store(f32(Math.sin(angle)))];
}

function sumOf(values: readonly number[], inPairs: boolean): number {
  if (!inPairs) return values.reduce((a, b) => f32(a + b), 0);
  if (values.length === 1) return values[0];
  const half = values.length >> 1;
  return f32(sumOf(values.slice(0, half), true) + sumOf(values.slice(half), true));
}

/** What a kernel in fp32 makes of a tensor. */
export function runPrologue(
  plan: ProloguePlan,
  name: 'q' | 'k' | 'v',
  mistake: PrologueMistake = {},
  inPairs = false,
): Float64Array {
  const wrong = mistake.onlyOf === undefined || mistake.onlyOf === name ? mistake : {};
  const { columns, tokens } = plan;
  const heads = name === 'q' ? plan.heads.q : plan.heads.k;
  const given = plan.inputs[name];
  const isPlain = name === 'v' && wrong.rotatesValues !== true;
  if (isPlain) return given.map((x) => rounded(x, plan.output));
  const { dims, first, layout, order, offset, normFormat } = { ...plan, ...wrong };
  const epsilon = wrong.epsilon ?? plan.epsilon;
  const own = name === 'v' ? null : plan.gains[name];
  const gain = own === null || name === 'v' ? null : (wrong.gain?.(own, plan, name) ?? own);
  const out = new Float64Array(given.length);
  const squares = (values: readonly number[]) => values.map((x) => f32(x * x));
  const normed = (vector: number[], token: number, head: number): number[] => {
    if (epsilon === null || gain === null || wrong.hasNoNorm === true) return vector;
    const mean = sumOf(vector, inPairs) / columns;
    const x = wrong.isCentred === true ? vector.map((one) => f32(one - mean)) : vector;
    const row = (h: number) => [
      ...given.subarray((token * heads + h) * columns, (token * heads + h + 1) * columns),
    ];
    const sum =
      wrong.overToken === true
        ? sumOf(
            Array.from({ length: heads }, (_, h) => sumOf(squares(row(h)), inPairs)),
            false,
          ) / heads
        : sumOf(squares(x), inPairs);
    const size = wrong.isSum === true ? sum : f32(sum / columns);
    const root =
      wrong.isOutside === true
        ? f32(f32(Math.sqrt(size)) + epsilon)
        : f32(Math.sqrt(f32(size + epsilon)));
    const inverse = f32(1 / root);
    return x.map((one, i) =>
      rounded(
        f32(f32(one * inverse) * f32(gain[head * columns + i] + offset)),
        normFormat ?? 'fp32',
      ),
    );
  };
  const turned = (vector: number[], token: number): number[] => {
    if (!plan.hasRope) return vector;
    const found = [...vector];
    const pairs = dims / 2;
    const position = wrong.position?.(token, plan) ?? plan.positions[token];
    for (let time = 0; time < (wrong.times ?? 1); time++)
      for (let t = 0; t < pairs; t++) {
        const [a, b] = layout === 'halves' ? [t, t + pairs] : [2 * t, 2 * t + 1];
        const both = tableAt(plan, position, t, wrong);
        const [c, sine] = wrong.isSwapped === true ? [both[1], both[0]] : both;
        const s = (wrong.sign ?? 1) * sine;
        const [x, y] = [found[first + a], found[first + b]];
        found[first + a] = f32(f32(x * c) - f32(y * s));
        found[first + b] = f32(f32(y * c) + f32(x * s));
      }
    return found;
  };
  const factor =
    name === 'q'
      ? (wrong.factor?.(plan.factor) ?? plan.factor)
      : name === 'k' && wrong.scalesKeys === true
        ? plan.factor
        : 1;
  for (let token = 0; token < tokens; token++)
    for (let head = 0; head < heads; head++) {
      const at = (token * heads + head) * columns;
      const vector = [...given.subarray(at, at + columns)];
      const made =
        order === 'rope-norm'
          ? normed(turned(vector, token), token, head)
          : turned(normed(vector, token, head), token);
      made.forEach((x, i) => (out[at + i] = rounded(f32(x * f32(factor)), plan.output)));
    }
  return out;
}

function tensor(values: Float64Array, shape: readonly number[], format: Short): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** The rows of tables that a plan's own or mistaken positions may need. */
function rotaryOf(plan: ProloguePlan): Rotary | null {
  if (!plan.hasRope) return null;
  const { layout, first, dims, base, tables, positions } = plan;
  const rows = Int32Array.from({ length: Math.max(...positions) + 3 }, (_, i) => i);
  const common = {
    layout,
    first,
    positions: Int32Array.from(positions),
    sequences: Int32Array.from(plan.sequences),
  };
  const pairs = dims / 2;
  if (tables === null) {
    const made = { frequencies: { base, dims, pairs, factor: 1 }, format: 'fp32' } as const;
    return { ...common, ...computedTables(rows, made), rows, made };
  }
  const exact = (of: (x: number) => number) =>
    Float64Array.from({ length: rows.length * pairs }, (_, i) =>
      of(rows[Math.floor(i / pairs)] * base ** (-(2 * (i % pairs)) / dims)),
    );
  const shape = [rows.length, pairs];
  return {
    ...common,
    tables: {
      cos: tensor(exact(Math.cos), shape, tables),
      sin: tensor(exact(Math.sin), shape, tables),
    },
  };
}

/** What is judged of a plan and a kernel. */
export function judgedPrologue(
  plan: ProloguePlan,
  mistake: PrologueMistake = {},
  inPairs = false,
): GivenPrologue {
  const part = (name: 'q' | 'k' | 'v'): JudgedPart => {
    const heads = name === 'q' ? plan.heads.q : plan.heads.k;
    const shape = [plan.tokens, heads, plan.columns];
    const made = runPrologue(plan, name, mistake, inPairs);
    const prologue: Prologue | null =
      name === 'v'
        ? null
        : {
            norm:
              plan.epsilon === null
                ? null
                : {
                    gain: tensor(plan.gains[name], [heads, plan.columns], 'fp32'),
                    epsilon: plan.epsilon,
                    offset: plan.offset,
                    ...(plan.normFormat !== null && { format: plan.normFormat }),
                  },
            rotary: rotaryOf(plan),
            rounding: 'fp32',
            order: plan.order,
            factor: name === 'q' ? plan.factor : 1,
          };
    return {
      name,
      input: tensor(plan.inputs[name], shape, plan.inputFormat),
      prologue,
      output: { ...tensor(made, shape, plan.output), format: plan.output },
    };
  };
  return { parts: [part('q'), part('k'), part('v')], words: [] };
}

/** Draws a plan; what `fixed` says is so. */
export function drawPrologue(seed: number, fixed: Partial<ProloguePlan> = {}): ProloguePlan {
  const draw = randomNumbers(seed);
  const one = <T>(of: readonly T[]): T => of[Math.floor(draw() * of.length)];
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  const columns = fixed.columns ?? one([16, 32, 64]);
  const heads = fixed.heads ?? { q: 4, k: 2 };
  const tokens = fixed.tokens ?? 6;
  const starts = [Math.floor(draw() * 200), Math.floor(draw() * 900)];
  const sequences = Array.from({ length: tokens }, (_, i) => (i < tokens / 2 ? 0 : 1));
  const inputFormat = fixed.inputFormat ?? one(['bf16', 'fp16', 'fp32'] as const);
  const size = 2 ** Math.floor(draw() * 6 - 3);
  const values = (count: number) =>
    Float64Array.from({ length: tokens * count * columns }, () =>
      rounded(normal() * size, inputFormat),
    );
  const gain = (count: number) =>
    Float64Array.from({ length: count * columns }, () => f32(0.6 + 0.8 * draw()));
  const dims = fixed.dims ?? one([columns, columns / 2]);
  return {
    tokens,
    heads,
    columns,
    sequences,
    inputFormat,
    dims,
    positions: sequences.map((sequence, i) => starts[sequence] + (i % Math.ceil(tokens / 2))),
    layout: one(['halves', 'neighbours'] as const),
    first: one([0, columns - dims]),
    base: one([10000, 500000]),
    tables: one([null, 'fp32', 'bf16'] as const),
    hasRope: draw() < 0.85,
    epsilon: one([null, 1e-6, 1e-5]),
    offset: one([0, 1] as const),
    normFormat: one([null, 'bf16', 'fp16'] as const),
    order: one(['norm-rope', 'rope-norm'] as const),
    factor: one([1, columns ** -0.5]),
    output: one(['bf16', 'fp16', 'fp32'] as const),
    inputs: { q: values(heads.q), k: values(heads.k), v: values(heads.k) },
    gains: { q: gain(heads.q), k: gain(heads.k) },
    ...fixed,
  };
}
