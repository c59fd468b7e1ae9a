import type { Spans } from '../../../../../oracles/index.js';
import { supposedPart, type SupposedPart, type Supposition } from '../supposition.js';

/** A fault of a writer: its name, what it does in a clause, and what it leaves in the cache. */
export interface WriteFault {
  readonly id: string;
  readonly sentence: string;
  readonly supposed: Supposition;
}

/** A supposition with other parts, whose factors are made of their own numbers. */
export function withParts(
  right: Supposition,
  change: (of: SupposedPart, index: number) => SupposedPart,
): Supposition {
  const parts = right.parts.map(change);
  return { ...right, parts, sized: parts };
}

/** A part with other numbers. */
export function withValues(of: SupposedPart, values: Spans): SupposedPart {
  return { ...supposedPart(of.part, of.terms, values), numbers: of.numbers, factors: of.factors };
}

/** Numbers changed one by one. */
export function mapSpans({ low, high }: Spans, change: (x: number) => number): Spans {
  const first = low.map(change);
  return { low: first, high: low === high ? first : high.map(change) };
}
