import { bitsOf, decodePlain, encodePlain } from './plain-codes.js';
import { addresses, elementsOf, type Sizes } from './plain-layouts.js';
import type { CodeName, FactorRule } from '../../../../src/problem/index.js';

/** How factors are made and where they lie. */
export interface PlannedScaling {
  readonly code: CodeName;
  readonly columns: number;
  readonly layout: string;
  readonly perHead: boolean;
  readonly rule: FactorRule;
  readonly maximum: number;
  readonly floor: { readonly of: 'amax' | 'factor'; readonly least: number } | null;
  readonly division: 'divide' | 'reciprocal';
  readonly global: number;
}

/** A write to be made, and all that its writer reads. */
export interface Plan {
  readonly tokens: number;
  readonly heads: number;
  readonly columns: number;
  readonly blockSize: number;
  readonly blocks: number;
  readonly inputFormat: 'bf16' | 'fp16' | 'fp32';
  readonly code: CodeName;
  /** The layouts of K and V. */
  readonly layouts: readonly [string, string];
  readonly scaling: PlannedScaling | null;
  readonly slots: readonly number[];
  readonly positions: readonly number[];
  /** Numbers of K and V, [tokens, heads, columns], as numbers of their format. */
  readonly inputs: readonly [Float64Array, Float64Array];
  /** Tables [positions, pairs] of a rotation of K. */
  readonly rope: {
    readonly layout: 'halves' | 'neighbours';
    readonly pairs: number;
    readonly cos: Float32Array;
    readonly sin: Float32Array;
  } | null;
  /** A norm of K before it. */
  readonly norm: {
    readonly epsilon: number;
    readonly gain: Float32Array;
    readonly perHead: boolean;
  } | null;
  /** Fills caches with old bytes. */
  readonly old: (index: number) => number;
}

/** Steps of a writer that may be wrong. */
export interface Faults {
  readonly slots?: (slot: number, token: number) => readonly number[];
  readonly row?: (part: number, token: number, head: number) => readonly [number, number, number];
  readonly layout?: string;
  readonly factorLayout?: (part: number) => string;
  readonly position?: (token: number) => number;
  readonly ropeLayout?: 'halves' | 'neighbours';
  readonly withoutRope?: boolean;
  readonly epsilon?: number;
  readonly gainHead?: (head: number) => number;
  /** Columns whose largest size makes the factor of a group. */
  readonly sized?: (group: number, columns: number) => readonly [number, number];
  readonly sizedBeforeRope?: boolean;
  readonly sizeOf?: (x: number) => number;
  readonly factor?: (amax: number, right: number) => number;
  readonly storedFactor?: (factor: number) => number;
  /** Group whose factor divides. */
  readonly divisor?: (
    part: number,
    token: number,
    head: number,
    group: number,
  ) => readonly [number, number, number, number];
  /** Group whose factor is stored. */
  readonly stored?: (
    part: number,
    token: number,
    head: number,
    group: number,
  ) => readonly [number, number, number, number];
  readonly divide?: (x: number, factor: number) => number;
  readonly encode?: (x: number) => number;
  readonly afterwards?: (buffers: Map<string, Uint8Array>) => void;
}

const f32 = Math.fround;

/** K after its norm and rotation, in fp32, one rounding an operation. */
function prologueOf(plan: Plan, faults: Faults, part: number, withRope: boolean): Float64Array {
  const { heads, columns, norm, rope, positions } = plan;
  const values = plan.inputs[part].slice();
  if (part === 1) return values;
  for (let row = 0; row * columns < values.length; row++) {
    const at = row * columns;
    const token = Math.floor(row / heads);
    if (norm !== null) {
      let sum = 0;
      for (let i = 0; i < columns; i++) sum = f32(sum + f32(values[at + i] ** 2));
      const mean = f32(f32(sum * f32(1 / columns)) + (faults.epsilon ?? norm.epsilon));
      const root = f32(1 / f32(Math.sqrt(mean)));
      const head = norm.perHead ? (faults.gainHead?.(row % heads) ?? row % heads) : 0;
      for (let i = 0; i < columns; i++)
        values[at + i] = f32(f32(values[at + i] * root) * norm.gain[head * columns + i]);
    }
    if (rope !== null && withRope) {
      const position = faults.position?.(token) ?? positions[token];
      const layout = faults.ropeLayout ?? rope.layout;
      for (let t = 0; t < rope.pairs; t++) {
        const [a, b] =
          layout === 'halves' ? [at + t, at + t + rope.pairs] : [at + 2 * t, at + 2 * t + 1];
        const [x, y] = [values[a], values[b]];
        const [c, s] = [rope.cos[position * rope.pairs + t], rope.sin[position * rope.pairs + t]];
        values[a] = f32(f32(x * c) - f32(y * s));
        values[b] = f32(f32(y * c) + f32(x * s));
      }
    }
  }
  return values;
}

/** The factor that a rule makes of a largest size, in fp32; before it is stored. */
export function plainFactor(amax: number, scaling: PlannedScaling, code: CodeName): number {
  const { rule, maximum, floor, division, global } = scaling;
  const size = floor?.of === 'amax' ? Math.max(amax, f32(floor.least)) : amax;
  const top: Readonly<Partial<Record<CodeName, number>>> = {
    e4m3: 8,
    e5m2: 15,
    e2m1: 2,
    e4m3fnuz: 7,
    int8: 6,
  };
  if (rule === 'amax' || rule === 'power-up') {
    let factor = division === 'divide' ? f32(size / maximum) : f32(size * f32(1 / maximum));
    if (global !== 1) factor = f32(factor * f32(1 / global));
    if (floor?.of === 'factor') factor = Math.max(factor, f32(floor.least));
    if (rule === 'amax' || factor === 0) return factor;
    let power = 2 ** -126;
    while (power < factor) power *= 2;
    while (power / 2 >= factor) power /= 2;
    return power;
  }
  let below = 2 ** -140;
  while (below * 2 <= size) below *= 2;
  if (rule === 'mx-ceil' && below < size) below *= 2;
  const bits = { e4m3: 4, e5m2: 3, e2m1: 2, e4m3fnuz: 4, int8: 7 }[code as 'e4m3'];
  if (rule === 'mx-even' && size / below >= 2 - 2 ** -bits) below *= 2;
  return size === 0 ? 0 : below / 2 ** (top[code] ?? 0);
}

function put(bytes: Uint8Array, index: number, bits: number, code: number): void {
  if (bits === 4) {
    const shift = index % 2 === 0 ? 0 : 4;
    bytes[index >> 1] = (bytes[index >> 1] & (0xf0 >> shift)) | (code << shift);
    return;
  }
  for (let i = 0; i < bits / 8; i++)
    bytes[(index * bits) / 8 + i] = Math.floor(code / 2 ** (8 * i)) & 0xff;
}

function bufferOf(
  elements: number,
  bits: number,
  old: (index: number) => number,
  salt: number,
): Uint8Array {
  return Uint8Array.from({ length: Math.ceil((elements * bits) / 8) }, (_, i) => old(i + salt));
}

/** The name of the buffer of a part's numbers or factors. */
export function bufferName(plan: Plan, part: number, isFactor: boolean): string {
  const layout = isFactor ? (plan.scaling?.layout ?? '') : plan.layouts[part];
  if (isFactor) return part === 0 ? 'k_scale' : 'v_scale';
  return layout.startsWith('joined') ? 'kv_cache' : part === 0 ? 'key_cache' : 'value_cache';
}

/** Sizes of a part's numbers, or of its factors. */
export function sizesOf(plan: Plan, part: number, isFactor: boolean): Sizes {
  const { blocks, blockSize, heads, columns, scaling, code } = plan;
  return {
    blocks,
    blockSize,
    heads: isFactor && scaling !== null && !scaling.perHead ? 1 : heads,
    columns: isFactor && scaling !== null ? columns / scaling.columns : columns,
    part,
    packed: 128 / bitsOf[code],
  };
}

/** Buffers before and after a write. */
export interface Written {
  readonly before: Map<string, Uint8Array>;
  readonly after: Map<string, Uint8Array>;
}

/** Writes K and V as a kernel does, right but for its faults. */
export function writePlain(plan: Plan, faults: Faults = {}): Written {
  const { tokens, heads, columns, scaling, code, slots, old } = plan;
  const after = new Map<string, Uint8Array>();
  for (const part of [0, 1]) {
    const name = bufferName(plan, part, false);
    if (!after.has(name))
      after.set(
        name,
        bufferOf(
          elementsOf(plan.layouts[part], sizesOf(plan, part, false)),
          bitsOf[code],
          old,
          7 * part,
        ),
      );
    if (scaling !== null)
      after.set(
        bufferName(plan, part, true),
        bufferOf(
          elementsOf(scaling.layout, sizesOf(plan, part, true)),
          bitsOf[scaling.code],
          old,
          3 + part,
        ),
      );
  }
  const before = new Map([...after].map(([name, bytes]) => [name, bytes.slice()]));
  const values = [0, 1].map((part) => prologueOf(plan, faults, part, faults.withoutRope !== true));
  const sizedValues = [0, 1].map((part) =>
    prologueOf(plan, faults, part, faults.withoutRope !== true && faults.sizedBeforeRope !== true),
  );
  const perGroup = scaling?.columns ?? columns;
  const factorOf = (part: number, token: number, head: number, group: number): number => {
    if (scaling === null) return 1;
    const [first, last] = faults.sized?.(group, perGroup) ?? [
      group * perGroup,
      (group + 1) * perGroup,
    ];
    let amax = 0;
    for (const other of scaling.perHead ? [head] : Array.from({ length: heads }, (_, i) => i))
      for (let i = first; i < Math.min(last, columns); i++) {
        const x = sizedValues[part][(token * heads + other) * columns + i];
        amax = Math.max(amax, faults.sizeOf?.(x) ?? Math.abs(x));
      }
    const right = plainFactor(amax, scaling, code);
    return decodePlain(
      scaling.code,
      encodePlain(scaling.code, faults.factor?.(amax, right) ?? right),
    );
  };
  const divide = (x: number, factor: number): number => {
    if (scaling === null) return x;
    const whole = scaling.global === 1 ? factor : f32(factor * scaling.global);
    if (whole === 0) return 0;
    return scaling.division === 'divide' ? f32(x / whole) : f32(x * f32(1 / whole));
  };
  for (let token = 0; token < tokens; token++) {
    const own = slots[token] < 0 ? [] : [slots[token]];
    for (const slot of faults.slots?.(slots[token], token) ?? own)
      for (const part of [0, 1])
        for (let head = 0; head < heads; head++) {
          const [fromPart, fromToken, fromHead] = faults.row?.(part, token, head) ?? [
            part,
            token,
            head,
          ];
          const row = (fromToken * heads + fromHead) * columns;
          const numbers = after.get(bufferName(plan, part, false)) ?? new Uint8Array();
          const at = addresses[faults.layout ?? plan.layouts[part]];
          for (let column = 0; column < columns; column++) {
            const group = Math.floor(column / perGroup);
            const divisor = factorOf(
              ...(faults.divisor?.(fromPart, fromToken, fromHead, group) ??
                ([fromPart, fromToken, fromHead, group] as const)),
            );
            const x = values[fromPart][row + column];
            const quotient = (faults.divide ?? divide)(x, divisor);
            const bits = faults.encode?.(quotient) ?? encodePlain(code, quotient);
            put(numbers, at(sizesOf(plan, part, false), slot, head, column), bitsOf[code], bits);
          }
          if (scaling === null || (!scaling.perHead && head > 0)) continue;
          const factors = after.get(bufferName(plan, part, true)) ?? new Uint8Array();
          const factorAt = addresses[faults.factorLayout?.(part) ?? scaling.layout];
          for (let group = 0; group * perGroup < columns; group++) {
            const found = factorOf(
              ...(faults.stored?.(fromPart, fromToken, fromHead, group) ??
                ([fromPart, fromToken, fromHead, group] as const)),
            );
            const stored = faults.storedFactor?.(found) ?? found;
            put(
              factors,
              factorAt(sizesOf(plan, part, true), slot, head, group),
              bitsOf[scaling.code],
              encodePlain(scaling.code, stored),
            );
          }
        }
  }
  faults.afterwards?.(after);
  return { before, after };
}
