import type { Place, PlaceAxis, PlaceRange } from './place.js';

/** Ranges that are written out at most. */
const mostListed = 4;

function rangeText({ first, last }: PlaceRange): string {
  return first === last ? String(first) : `${first} to ${last}`;
}

function sizeOf({ first, last }: PlaceRange): number {
  return last - first + 1;
}

/** "3", "3 to 7", "3, 5 to 7 and 9"; of many the first, "3, 5, 9 and 20 more". */
function listRanges(ranges: readonly PlaceRange[]): string {
  // "3 and 4" is shorter than "3 to 4", and says the same.
  const apart = ranges.flatMap((range) =>
    ranges.length > 1 && sizeOf(range) === 2
      ? [
          { first: range.first, last: range.first },
          { first: range.last, last: range.last },
        ]
      : [range],
  );
  const shown = apart.length > mostListed ? apart.slice(0, mostListed - 1) : apart;
  const left = apart.slice(shown.length).reduce((sum, range) => sum + sizeOf(range), 0);
  const texts = [...shown.map(rangeText), ...(left === 0 ? [] : [`${left} more`])];
  return texts.length === 1
    ? String(texts[0])
    : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}

/** "head 2", "queries 0 to 7 of each 32". */
function axisText(one: string, many: string, axis: PlaceAxis | null): string[] {
  if (axis === null) return [];
  const { ranges, each } = axis;
  const isOne = ranges.length === 1 && ranges.every(({ first, last }) => first === last);
  const noun = isOne && each === null ? one : many;
  return [`${noun} ${listRanges(ranges)}${each === null ? '' : ` of each ${each}`}`];
}

/**
 * A place in words, from the outside in: "sequence 0, heads 2 to 3, 23 of 1024 rows", "kv head 1, keys 64 to
 * 127", "columns 5 to 6", "23 of 1024 rows, all with their maximum in keys 256 to 319". Of a place without bounds "everywhere".
 */
export function describePlace(place: Place): string {
  const { sequences, heads, kvHeads, queries, rows, maxima, keys, columns } = place;
  const counted =
    rows === null ? '' : `${rows.count} of ${rows.of} ${rows.sampled ? 'sampled ' : ''}rows`;
  const parts = [
    ...axisText('sequence', 'sequences', sequences),
    ...axisText('head', 'heads', heads),
    ...axisText('kv head', 'kv heads', kvHeads),
    ...axisText('query', 'queries', queries),
    ...(counted === '' ? [] : [counted]),
    ...axisText('key', 'keys', maxima).map((text) => `all with their maximum in ${text}`),
    ...axisText('key', 'keys', keys),
    ...axisText('column', 'columns', columns),
  ];
  return parts.length === 0 ? 'everywhere' : parts.join(', ');
}

/** The place of a cause in brackets, behind a space; '' where it is everywhere or nowhere in particular. */
export function placeInBrackets(place: Place | null): string {
  const text = place === null ? '' : describePlace(place);
  return text === '' || text === 'everywhere' ? '' : ` (${text})`;
}
