import type { Envelope } from '../envelope.js';

/** Pixels with one decimal. */
function at(pixels: number): string {
  return String(Number(pixels.toFixed(1)));
}

/** The outline of columns `first` to `last`: along the largest errors, back along the smallest. */
function outline(
  { least, most }: Envelope,
  [first, last]: readonly [number, number],
  edges: readonly number[],
  place: (value: number) => number,
): string {
  const steps: string[] = [`M${at(edges[first])} ${at(place(most[first]))}`];
  for (let column = first; column <= last; column++)
    steps.push(`V${at(place(most[column]))}H${at(edges[column + 1])}`);
  for (let column = last; column >= first; column--)
    steps.push(`V${at(place(least[column]))}H${at(edges[column])}`);
  return `${steps.join('')}Z`;
}

/**
 * The outlines of an envelope as SVG path data, one for each run of columns with errors.
 * @param edges where each column begins and the last ends, in pixels
 * @param place where a value lies, in pixels
 */
export function envelopePaths(
  envelope: Envelope,
  edges: readonly number[],
  place: (value: number) => number,
): string[] {
  const paths: string[] = [];
  const columns = envelope.least.length;
  for (let column = 0; column < columns; column++) {
    if (envelope.least[column] > envelope.most[column]) continue;
    const first = column;
    while (column + 1 < columns && envelope.least[column + 1] <= envelope.most[column + 1])
      column++;
    paths.push(outline(envelope, [first, column], edges, place));
  }
  return paths;
}
