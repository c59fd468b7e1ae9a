import {
  codes,
  extentOfField,
  factorLayouts,
  fieldOf,
  numberLayouts,
  cachePartShape,
  type Field,
} from '../../../../problem/index.js';
import type { JudgedWrite } from '../judge-write.js';
import type { Row, Supposition } from '../supposition.js';
import { withParts, type WriteFault } from './write-fault.js';

/** Layouts by name. */
type Layouts = Readonly<Record<string, string>>;

/** A field of the same buffer in another layout; null where the buffer has no room for it, or the letters have no meaning. */
function inLayout(field: Field, layout: string, blockSize: number, bytes: number): Field | null {
  const { sizes, base, buffer, code } = field;
  const quarter = sizes.columns / 4;
  const usesQuarter = layout.includes('G');
  if (usesQuarter && !Number.isInteger(quarter)) return null;
  const letters = {
    B: blockSize,
    X: 128 / codes[code].bits,
    ...(usesQuarter && { G: quarter }),
  };
  const found = fieldOf(layout, sizes, { buffer, code, baseBytes: base / 8 }, letters);
  return extentOfField(found) <= 8 * bytes && String(found.axes) !== '' ? found : null;
}

function* relaidNumbers({ write }: JudgedWrite, right: Supposition, layouts: Layouts) {
  for (const [name, layout] of Object.entries(layouts)) {
    const fields = right.parts.map(({ numbers }) =>
      inLayout(numbers, layout, write.blockSize, write.after.get(numbers.buffer)?.length ?? 0),
    );
    if (fields.some((field) => field === null)) continue;
    yield {
      id: 'layout',
      sentence: `numbers are stored in the layout ${name} (${layout}), not in the cache's (${right.parts[0].numbers.layout})`,
      supposed: withParts(right, (of, i) => ({ ...of, numbers: fields[i] ?? of.numbers })),
    } satisfies WriteFault;
  }
}

/** Factors of all parts, or of one of them, in another order. */
function* relaidFactors({ write }: JudgedWrite, right: Supposition, layouts: Layouts) {
  const scaled = [...right.parts.keys()].filter((part) => right.parts[part].factors !== null);
  const choices = scaled.length > 1 ? [scaled, ...scaled.map((part) => [part])] : [scaled];
  for (const [name, layout] of Object.entries(layouts))
    for (const chosen of choices) {
      const fields = right.parts.map(({ factors }, part) =>
        factors === null || !chosen.includes(part)
          ? factors
          : inLayout(
              factors,
              layout,
              write.blockSize,
              write.after.get(factors.buffer)?.length ?? 0,
            ),
      );
      if (chosen.length === 0 || chosen.some((part) => fields[part] === null)) continue;
      const of = chosen.map((part) => right.parts[part].part.name).join(' and ');
      const declared = right.parts[chosen[0]].factors?.layout;
      yield {
        id: 'factor-order',
        sentence: `factors of ${of} are stored in the order ${name} (${layout}), not in that they are read in (${declared})`,
        supposed: withParts(right, (one, i) => ({ ...one, factors: fields[i] ?? one.factors })),
      } satisfies WriteFault;
    }
}

/** A fault of which row is stored where. */
function exchanged(
  right: Supposition,
  id: string,
  sentence: string,
  source: (row: Row) => Row,
): WriteFault {
  return {
    id,
    sentence,
    supposed: {
      ...right,
      source,
      measured: (one) => ({ ...source(one), group: one.group }),
    },
  };
}

/** The orders of heads that writers confuse. */
function* headFaults(right: Supposition): Generator<WriteFault> {
  const heads = cachePartShape(right.parts[0].part).heads;
  if (heads < 2 || right.parts.some(({ part }) => cachePartShape(part).heads !== heads)) return;
  const orders: readonly (readonly [string, (head: number) => number])[] = [
    ['each head holds the head behind', (head) => (head + 1) % heads],
    ['each head holds the head before', (head) => (head + heads - 1) % heads],
    ['heads are in reverse order', (head) => heads - 1 - head],
    ['all heads hold the first', () => 0],
    ['even heads and odd heads are exchanged', (head) => Math.min(heads - 1, head ^ 1)],
    ['the halves of the heads are exchanged', (head) => (head + Math.floor(heads / 2)) % heads],
    ['heads are interleaved', (head) => (head % 2) * Math.ceil(heads / 2) + Math.floor(head / 2)],
  ];
  for (const [sentence, order] of orders)
    yield exchanged(right, 'head-order', sentence, (row) => ({ ...row, head: order(row.head) }));
}

/** Writers that confuse tensors, heads, columns, or the order of what they store. */
export function* layoutFaults(judged: JudgedWrite, right: Supposition): Generator<WriteFault> {
  const [first, second] = right.parts.map(({ part }) => cachePartShape(part));
  const isPair =
    right.parts.length === 2 && first.heads === second.heads && first.columns === second.columns;
  if (isPair)
    yield exchanged(right, 'tensors-swapped', 'K and V are exchanged', (row) => ({
      ...row,
      part: 1 - row.part,
    }));
  yield* headFaults(right);
  yield* relaidFactors(judged, right, factorLayouts);
  yield* relaidNumbers(judged, right, numberLayouts);
}
