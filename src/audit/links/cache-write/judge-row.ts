import {
  factorSpan,
  isLegal,
  legalNumbers,
  type LegalNumbers,
  type Span,
} from '../../../../oracles/index.js';
import {
  bitOf,
  codeAt,
  codes,
  cachePartShape,
  rowBitOf,
  type CacheWrite,
  type Field,
} from '../../../problem/index.js';
import {
  createMeasure,
  type Group,
  type Row,
  type SupposedPart,
  type Supposition,
} from './supposition.js';

/** A stored number or factor that is none of those that it may be. */
export interface Misfit {
  readonly index: number;
  readonly found: number;
  readonly expected: Span;
}

/** What is stored of a row, held against a supposition. */
export interface JudgedRow {
  /** Numbers that are wrong, and that are judged. */
  readonly wrong: number;
  readonly judged: number;
  /** Numbers that may be one or another. */
  readonly either: number;
  readonly firstWrong: Misfit | null;
  readonly wrongFactors: number;
  readonly judgedFactors: number;
  readonly firstWrongFactor: Misfit | null;
}

/** Reads a number of a cache. */
export function readAt(
  buffers: ReadonlyMap<string, Uint8Array>,
  field: Field,
  slot: number,
  head: number,
  column: number,
): number {
  const bytes = buffers.get(field.buffer) ?? new Uint8Array();
  const { bits, decode } = codes[field.code];
  return decode(codeAt(bytes, bitOf(field, slot, head, column), bits));
}

/** Counts of a row, while it is judged. */
type Counts = { -readonly [Member in keyof JudgedRow]: JudgedRow[Member] };

function endsOf({ low, high, nan }: LegalNumbers): Span {
  return nan && low > high ? [NaN, NaN] : [low, high];
}

/** Whether more than one number is right; 0 and -0 are one. */
function hasChoice({ low, high, nan }: LegalNumbers): boolean {
  return low < high || (nan && low === high);
}

/** Judges rows; `stopsEarly` for callers who want to know whether one is right only. */
export type RowJudge = (
  supposed: Supposition,
  row: Row,
  slot: number,
  stopsEarly?: boolean,
) => JudgedRow;

/** What is known of the factors of a write. */
interface FactorJudge {
  /** Counts a stored factor, and whether it is right. */
  readonly count: (supposed: Supposition, group: Group, found: number, counts: Counts) => void;
  /** The span of what the numbers of a group are divided by. */
  readonly divisor: (supposed: Supposition, group: Group, found: number) => Span;
}

function createFactorJudge({ after, slots }: CacheWrite): FactorJudge {
  const measure = createMeasure(slots);
  /** The factor of a group by its rule; null where there is none. */
  const ruled = (supposed: Supposition, group: Group): Span | null => {
    const of: SupposedPart = supposed.sized[group.part];
    return of.terms === null ? null : factorSpan(measure(of, group), of.terms);
  };
  return {
    count: (supposed, group, found, counts) => {
      const to = supposed.measured(group);
      const span = ruled(supposed, to);
      if (span === null && supposed.parts[group.part].terms?.rule === 'given') return;
      // Sizes that are no numbers make factors that nobody can foretell.
      if (!(measure(supposed.sized[to.part], to)[1] < Infinity)) return;
      counts.judgedFactors++;
      const [low, high] = span === null ? [0, Number.MAX_VALUE] : supposed.storedFactor(span);
      if (found >= low && found <= high) return;
      counts.wrongFactors++;
      counts.firstWrongFactor ??= { index: group.group, found, expected: [low, high] };
    },
    divisor: (supposed, group, found) => {
      const { scaling, factors } = supposed.parts[group.part];
      const global = scaling?.global ?? 1;
      const other = supposed.divided?.(group);
      let span: Span = [found, found];
      if (other !== undefined && factors !== null) {
        const slot = supposed.slots[other.token];
        const stored = readAt(after, factors, slot, other.head, other.group);
        span = ruled(supposed, other) ?? [stored, stored];
      }
      const [low, high] = supposed.divisor(span);
      return [low * global, high * global];
    },
  };
}

/** A judge of the rows of a write. */
export function createRowJudge(write: CacheWrite): RowJudge {
  const { after } = write;
  const factorJudge = createFactorJudge(write);
  return (supposed, row, slot, stopsEarly = false) => {
    const counts: Counts = {
      wrong: 0,
      judged: 0,
      either: 0,
      firstWrong: null,
      wrongFactors: 0,
      judgedFactors: 0,
      firstWrongFactor: null,
    };
    const of = supposed.parts[row.part];
    const { columns, heads } = cachePartShape(of.part);
    const from = supposed.source(row);
    const { low, high } = supposed.parts[from.part].values;
    const first = (from.token * heads + from.head) * columns;
    const perGroup = of.scaling?.columns ?? columns;
    let divisor: Span | null = null;
    const bytes = after.get(of.numbers.buffer) ?? new Uint8Array();
    const { bits, decode } = codes[of.numbers.code];
    const { columnBits } = of.numbers;
    const rowBit = rowBitOf(of.numbers, slot, row.head);
    for (let column = 0; column < columns; column++) {
      if (of.factors !== null && column % perGroup === 0) {
        const group = { ...row, group: column / perGroup };
        const found = readAt(after, of.factors, slot, row.head, group.group);
        factorJudge.count(supposed, group, found, counts);
        divisor = factorJudge.divisor(supposed, group, found);
      }
      const value = [low[first + column], high[first + column]] as const;
      const legal = legalNumbers(value, divisor, of.numberTerms);
      if (legal !== null) {
        const found = decode(codeAt(bytes, rowBit + columnBits[column], bits));
        counts.judged++;
        if (hasChoice(legal)) counts.either++;
        if (!isLegal(found, legal)) {
          counts.wrong++;
          counts.firstWrong ??= { index: column, found, expected: endsOf(legal) };
        }
      }
      if (stopsEarly && counts.wrong + counts.wrongFactors > 0) return counts;
    }
    return counts;
  };
}
