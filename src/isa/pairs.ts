import { lazily } from '../reuse.js';
import type { Evidence, LaneValue, Variant } from './instruction.js';
import { capture, type Row } from './row.js';
import { choicesOf, parseSyntax } from './syntax.js';
import { onHalves, onPairs } from './vectors/index.js';

/** Applies a function of words to the two words of registers of 64 bits. */
function ofWords(evaluate: Variant['evaluate']): Variant['evaluate'] {
  return (...values) => {
    const half = (shift: bigint): bigint =>
      BigInt(
        evaluate(
          ...values.map((value) => Number((BigInt(value) >> shift) & 0xffffffffn)),
        ) as LaneValue,
      );
    return (half(32n) << 32n) | half(0n);
  };
}

/** Applies a function of 16-bit halves to registers of two halves: to the low halves and to the high ones. */
export function ofHalves(
  compute: (...halves: number[]) => number,
): (...values: LaneValue[]) => number {
  return (...values) => {
    const words = values.map(Number);
    const low = compute(...words.map((word) => word & 0xffff));
    const high = compute(...words.map((word) => word >>> 16));
    return ((high << 16) | low) >>> 0;
  };
}

/** What a row of pairs has of its own; see `RowFacts`. */
interface PairFacts {
  /** As that of the single elements, with a type that ends in `x2`. */
  readonly syntax: string;
  readonly alternatives?: Readonly<Record<string, readonly string[]>>;
  readonly evidence: Evidence;
}

/**
 * The row of a packed type, whose elements are those of another row's type: each element's result is that of the single
 * instruction.
 */
export function pairsOf(single: Row, { syntax, alternatives = {}, evidence }: PairFacts): Row {
  const variants = lazily((): readonly Variant[] => {
    const singles = new Map(single.variants().map((variant) => [variant.name, variant]));
    return choicesOf(parseSyntax(syntax), alternatives).map(({ name }): Variant => {
      const element = singles.get(name.replace(/x2$/, ''));
      if (element === undefined) throw new Error(`no element of ${name}`);
      const { evaluate, emit, source, destinations } = element;
      const isOfWords = destinations[0] === 32;
      const width = isOfWords ? 64 : 32;
      return {
        ...element,
        name,
        destinations: [width],
        sources: element.sources.map(() => width),
        evaluate: isOfWords
          ? ofWords(evaluate)
          : ofHalves(evaluate as (...halves: number[]) => number),
        emit: emit === null ? null : isOfWords ? onPairs(emit) : onHalves(emit),
        laneOperations: 2,
        evidence,
        source: evidence === element.evidence ? source : source.replace(capture, ''),
        isOfMachine: isOfWords && element.isOfMachine,
        element: isOfWords ? element : null,
      };
    });
  });
  return { ...single, syntax, alternatives, variants };
}
