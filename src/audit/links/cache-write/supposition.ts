import {
  writtenValues,
  type FactorTerms,
  type NumberTerms,
  type Span,
  type Spans,
} from '../../../../oracles/index.js';
import {
  codes,
  cachePartShape,
  tells,
  type CachePart,
  type CacheWrite,
  type Code,
  type CodeRounding,
  type Field,
  type Scaling,
} from '../../../problem/index.js';

/** A head of a token of a part of a write. */
export interface Row {
  readonly part: number;
  readonly token: number;
  readonly head: number;
}

/** What a writer is supposed to do with each part. */
export interface SupposedPart {
  readonly part: CachePart;
  readonly values: Spans;
  readonly numbers: Field;
  readonly factors: Field | null;
  readonly scaling: Scaling | null;
  readonly terms: FactorTerms | null;
  readonly code: Code;
  readonly rounding: CodeRounding;
  readonly numberTerms: NumberTerms;
}

/** A block of columns of a row. */
export interface Group extends Row {
  readonly group: number;
}

/** What a writer is supposed to do: a right one, or one with a fault. */
export interface Supposition {
  readonly parts: readonly SupposedPart[];
  /** The parts whose largest sizes make the factors. */
  readonly sized: readonly SupposedPart[];
  readonly slots: Int32Array;
  /** The row whose numbers are stored as a row. */
  readonly source: (row: Row) => Row;
  /** The group whose largest size makes the factor that is stored. */
  readonly measured: (group: Group) => Group;
  /** The group by whose factor the numbers are divided; null for the factor that is stored. */
  readonly divided: ((group: Group) => Group) | null;
  /** The factor that is stored, of a right one. */
  readonly storedFactor: (span: Span) => Span;
  /** The divisor of numbers, of a factor. */
  readonly divisor: (span: Span) => Span;
}

function same<T>(x: T): T {
  return x;
}

/** A part as a right writer takes it. */
export function supposedPart(
  part: CachePart,
  terms: FactorTerms | null,
  values: Spans = writtenValues(part),
): SupposedPart {
  const code = codes[part.numbers.code];
  const { scaling, rounding } = part;
  return {
    part,
    values,
    numbers: part.numbers,
    factors: scaling?.factors ?? null,
    scaling,
    terms,
    code,
    rounding,
    numberTerms: {
      code,
      rounding,
      division: scaling?.division ?? null,
      isProduct: scaling !== null && scaling.global !== 1,
    },
  };
}

/** The terms of the factors of each part; null for one without factors. */
export type FactorTermsOf = (part: number) => FactorTerms | null;

/** What a right writer does. */
export function rightWriter(
  { parts, slots }: CacheWrite,
  termsOf: FactorTermsOf,
  valuesOf: readonly Spans[],
): Supposition {
  const supposed = parts.map((part, index) => supposedPart(part, termsOf(index), valuesOf[index]));
  return {
    parts: supposed,
    sized: supposed,
    slots,
    source: same,
    measured: same,
    divided: null,
    storedFactor: same,
    divisor: same,
  };
}

/** Largest sizes of groups, as spans: [tokens, heads, groups], of the tokens that are stored. */
interface LargestSizes {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly groups: number;
}

function sizesOfGroups({ part, values }: SupposedPart, perGroup: number): LargestSizes {
  const { heads, columns } = cachePartShape(part);
  const [tokens] = part.input.shape;
  const groups = Math.ceil(columns / perGroup);
  const low = new Float64Array(tokens * heads * groups);
  const high = new Float64Array(tokens * heads * groups);
  for (let row = 0; row < tokens * heads; row++)
    for (let column = 0; column < columns; column++) {
      const [a, b] = [values.low[row * columns + column], values.high[row * columns + column]];
      const at = row * groups + Math.floor(column / perGroup);
      const inner = a > 0 ? a : b < 0 ? -b : 0;
      // NaN and infinities stay: what they make is not judged.
      const outer = Math.max(Math.abs(a), Math.abs(b));
      if (!(inner <= low[at])) low[at] = inner;
      if (!(outer <= high[at])) high[at] = outer;
    }
  return { low, high, groups };
}

/** Takes the largest over heads, or over tokens, that share a factor. */
function shareSizes(
  sizes: Float64Array,
  [tokens, heads, groups]: readonly [number, number, number],
  shared: { readonly heads: boolean; readonly tokens: boolean },
  slots: Int32Array,
): void {
  const spread = (members: number[]) => {
    let most = 0;
    for (const at of members) if (!(sizes[at] <= most)) most = sizes[at];
    for (const at of members) sizes[at] = most;
  };
  const at = (token: number, head: number, group: number) =>
    (token * heads + head) * groups + group;
  for (let group = 0; group < groups; group++) {
    if (shared.heads)
      for (let token = 0; token < tokens; token++)
        spread(Array.from({ length: heads }, (_, head) => at(token, head, group)));
    const stored = [...slots.keys()].filter((token) => slots[token] >= 0);
    if (shared.tokens)
      for (let head = 0; head < heads; head++)
        spread(stored.map((token) => at(token, head, group)));
  }
}

/** Gives the largest size of a group's numbers, among all that share its factor; remembered for each part. */
export function createMeasure(slots: Int32Array): (of: SupposedPart, group: Group) => Span {
  const known = new WeakMap<SupposedPart, LargestSizes>();
  return (of, { token, head, group }) => {
    const { heads } = cachePartShape(of.part);
    let sizes = known.get(of);
    if (sizes === undefined) {
      sizes = sizesOfGroups(of, of.scaling?.columns ?? 1);
      const shape = [of.part.input.shape[0], heads, sizes.groups] as const;
      const shared = {
        heads: of.factors !== null && !tells(of.factors, 'head'),
        tokens: of.factors !== null && !tells(of.factors, 'slot'),
      };
      shareSizes(sizes.low, shape, shared, slots);
      shareSizes(sizes.high, shape, shared, slots);
      known.set(of, sizes);
    }
    const at = (token * heads + head) * sizes.groups + group;
    return [sizes.low[at], sizes.high[at]];
  };
}
